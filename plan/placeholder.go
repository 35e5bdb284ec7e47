package plan

import (
	"fmt"
	"slices"
	"strings"
)

// placeholders are the names that a session gives a value:
//
//	build    folder with what router.build made
//	socket   path of a unix socket to listen on
//	port     TCP port on 127.0.0.1 to listen on
//	dir      fresh writable folder of the run
//	arm      name of the arm
//	source   folder of the sources of the arm
//	targets  folder of the target file
//	cert     file of a test certificate (PEM), for TLS
//	key      file of its private key (PEM)
//
// {postgres.port}, {postgres.socket} and {postgres.dir} are those of the
// service with that name.
var placeholders = [...]string{"build", "socket", "port", "dir", "arm", "source", "targets", "cert", "key"}

// ofService are the placeholders that a service has of its own.
var ofService = [...]string{"port", "socket", "dir"}

// Expand replaces each {name} by its value. {{ is a literal brace, and braces
// around anything but small letters and underscores, or a service's name, a
// dot and one of its placeholders, are left alone, so that most JSON can stand
// as it is. A name without a value is an error.
func Expand(s string, values map[string]string) (string, error) {
	return expand(s, func(name string) (string, error) {
		if v, ok := values[name]; ok {
			return v, nil
		}
		if strings.Contains(name, ".") || slices.Contains(placeholders[:], name) {
			return "", fmt.Errorf("{%s} has no value in this session", name)
		}
		return "", unknownPlaceholder(name)
	})
}

func expand(s string, value func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		i := strings.IndexByte(s, '{')
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		out.WriteString(s[:i])
		s = s[i+1:]
		name, rest, closed := strings.Cut(s, "}")
		switch {
		case strings.HasPrefix(s, "{"):
			out.WriteByte('{')
			s = s[1:]
		case closed && isPlaceholder(name):
			v, err := value(name)
			if err != nil {
				return "", err
			}
			out.WriteString(v)
			s = rest
		default:
			out.WriteByte('{')
		}
	}
}

func isPlaceholder(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyz_"
	service, own, ok := strings.Cut(name, ".")
	if ok {
		return service != "" && strings.Trim(service, letters+"0123456789") == "" && slices.Contains(ofService[:], own)
	}
	return name != "" && strings.Trim(name, letters) == ""
}

func checkPlaceholders(s string, services []string) error {
	_, err := expand(s, func(name string) (string, error) {
		if service, _, ok := strings.Cut(name, "."); ok {
			if !slices.Contains(services, service) {
				return "", fmt.Errorf("{%s}: no service is called %s; add it to services, or write {{ for a literal brace", name, service)
			}
			return "", nil
		}
		if slices.Contains(placeholders[:], name) {
			return "", nil
		}
		return "", unknownPlaceholder(name)
	})
	return err
}

func unknownPlaceholder(name string) error {
	return fmt.Errorf("unknown placeholder {%s};%s known are {%s}, and {{ is a literal brace",
		name, didYouMean(name, placeholders[:]), strings.Join(placeholders[:], "} {"))
}

// uses reports which placeholders stand in the texts.
func uses(texts ...string) map[string]bool {
	used := map[string]bool{}
	for _, s := range texts {
		// The texts were checked when they were read, so no error is lost here.
		_, _ = expand(s, func(name string) (string, error) {
			used[name] = true
			return "", nil
		})
	}
	return used
}
