package session

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// certificate is a self-signed one for routers that speak TLS, as two files
// in PEM.
type certificate struct{ cert, key string }

// certificateLife is how long it is valid from now; longer than any session.
const certificateLife = 7 * 24 * time.Hour

// newCertificate writes cert.pem and key.pem to a folder that exists. They are
// good for localhost, its addresses and the given hosts (names or addresses,
// without ports), by ECDSA on P-256, which every TLS 1.2 server can use.
//
// The key is thrown away with the folder and guards nothing, so all may read
// it: a server started by root may drop its rights before it does.
func newCertificate(dir string, hosts ...string) (certificate, error) {
	c := certificate{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	fail := func(err error) (certificate, error) {
		return certificate{}, fmt.Errorf("making the test certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 63)) // a browser refuses a number it has seen
	if err != nil {
		return fail(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "plumbline test certificate"},
		NotBefore:    now.Add(-24 * time.Hour), // a clock that is a little behind
		NotAfter:     now.Add(certificateLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},

		BasicConstraintsValid: true, // it signs no others
	}
	for _, h := range append([]string{"localhost"}, hosts...) {
		switch ip := net.ParseIP(h); {
		case ip == nil && !slices.Contains(template.DNSNames, h):
			template.DNSNames = append(template.DNSNames, h)
		case ip != nil && !slices.ContainsFunc(template.IPAddresses, ip.Equal):
			template.IPAddresses = append(template.IPAddresses, ip)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fail(err)
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fail(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fail(err)
	}
	if err := writePEM(c.cert, "CERTIFICATE", certDER); err != nil {
		return fail(err)
	}
	if err := writePEM(c.key, "PRIVATE KEY", keyDER); err != nil {
		return fail(err)
	}
	return c, nil
}

// writePEM makes a file that all may read, whatever the umask.
func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644); err != nil {
		return err
	}
	return os.Chmod(path, 0o644)
}
