package targets

import (
	"encoding/json"
	"time"

	"plumbline/targets/keys"
)

// Kind says what a generated request set is to show about a server.
type Kind string

const (
	// JWTCache repeats long-lived tokens: after the first round a cache of
	// tokens is hit by every request.
	JWTCache Kind = "jwt-cache"
	// JWTCacheWorst sends every token once, and those that a cache holds
	// expire while the run goes on: the cache is of no use and has to clean up.
	JWTCacheWorst Kind = "jwt-cache-worst"
	// JWTUnique sends every token once, and none expires: no cache can help.
	JWTUnique Kind = "jwt-unique"
	// Mixed is a file written by hand, checked and copied.
	Mixed Kind = "mixed"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{JWTCache, JWTCacheWorst, JWTUnique, Mixed} }

// Once says whether each request of the kind is to be sent once to a process.
func (k Kind) Once() bool { return k == JWTCacheWorst || k == JWTUnique }

// Spec is what a request set is made from: the same Spec gives the same bytes.
type Spec struct {
	Kind     Kind
	Seed     uint64
	BaseTime time.Time       // iat and nbf of the tokens; whole seconds, UTC
	Count    int             // requests, above 0, without those for the preflight
	Method   string          // of every request
	URL      string          // {alg} in it is the algorithm; without it alg=… is added to the query
	Algs     []keys.Alg      // in turns, each in its own row of the report
	RSABits  int             // 2,048 to 16,384
	Claims   json.RawMessage // object of further claims; {n} {sub} {alg} {seed} in its strings are the token's
	Duration time.Duration   // JWTCacheWorst: from a router's start to its last request; LeastDuration or more
	Leeway   time.Duration   // JWTCacheWorst: how long after exp the server still takes a token; 0 or more
	From     string          // Mixed: the file to copy
}

// DefaultSpec is what is not said of a kind. Of JWTCacheWorst nobody but its
// user can say how long a router runs and which leeway its server has: the
// Duration is 0 and the Leeway negative, which Check refuses.
func DefaultSpec(k Kind) Spec {
	if k == Mixed {
		return Spec{Kind: k}
	}
	s := Spec{
		Kind: k, Seed: 1, BaseTime: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), Count: 1000,
		Method: "GET", URL: "http://router/authors_only", Algs: []keys.Alg{keys.HS256, keys.RS256}, RSABits: 4096,
	}
	if k == JWTCacheWorst {
		s.Leeway = unsaid
	}
	return s
}

// Manifest says what a generated folder holds and how it was made.
type Manifest struct {
	Format  int    `json:"format"`
	Warning string `json:"warning,omitempty"` // where there are keys: whoever opens the file should know that they are public
	Tool    string `json:"tool,omitempty"`    // plumbline's version; no other byte of the folder depends on it

	Kind      Kind             `json:"kind"`
	Seed      *uint64          `json:"seed,omitempty"` // of keys and order; Mixed has none
	BaseTime  time.Time        `json:"base_time,omitzero"`
	Requests  int              `json:"requests"`             // without the reserve
	Reserve   int              `json:"reserve,omitempty"`    // requests at the end of the file, for the preflight
	Once      bool             `json:"once,omitempty"`       // none of the requests is to be sent to a process twice
	Requested map[keys.Alg]int `json:"algorithms,omitempty"` // requests by algorithm, without the reserve
	RSABits   int              `json:"rsa_bits,omitempty"`   // where there is an RSA key
	Expiry    *Expiry          `json:"expiry,omitempty"`     // where tokens expire in the run

	Files []ManifestFile `json:"files"` // all but the manifest itself, by name
}

// Expiry says how tokens expire, for a given length of a run and leeway.
type Expiry struct {
	DurationS int `json:"duration_s"` // from a router's start, at base_time on its clock, to its last request
	LeewayS   int `json:"leeway_s"`   // after exp the server still takes a token for so long
	FirstS    int `json:"first_s"`    // the first token is refused so long after the router's start
	Expire    int `json:"expire"`     // requests whose token is refused before the run's end
}

// ManifestFile is a file with the SHA-256 of its bytes, in hex.
type ManifestFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// The names of a generated folder's files beside those of keys.Ring.Files.
const (
	TargetsFile  = "targets.http"
	ExpiredFile  = "expired.http" // one request per algorithm whose token is refused from base_time on
	ManifestName = "manifest.json"
)
