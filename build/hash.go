package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// HashTree returns the SHA-256 of what is at path, in hexadecimal. For a file
// it is that of its content, as sha256sum prints it. For a folder it is that
// of one line per entry below it, in the order of their paths:
//
//	KIND "PATH" SHA256
//
// PATH is relative, with slashes, quoted as in Go. KIND is dir (without a
// sum), file, exec (a file that somebody may execute) or link (the sum is that
// of the link's text). A link to a file has a second line, with the content
// that would be read or started. Owners, times and other modes do not count.
// Pipes, sockets and devices are an error.
func HashTree(path string) (string, error) {
	sum, err := hashTree(path)
	if err != nil {
		return "", fmt.Errorf("hashing %s: %w", path, err)
	}
	return sum, nil
}

func hashTree(root string) (string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return hashFile(root, info)
	}
	// A root that is a link to a folder would not be walked.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return "", err
	}
	type entry struct{ path, text string }
	var entries []entry
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		text, err := describe(path, rel, d)
		entries = append(entries, entry{rel, text})
		return err
	})
	if err != nil {
		return "", err
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	h := sha256.New()
	for _, e := range entries {
		io.WriteString(h, e.text)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// describe returns the line, or for some links lines, of an entry.
func describe(path, rel string, d fs.DirEntry) (string, error) {
	if d.IsDir() {
		return fmt.Sprintf("dir %q\n", rel), nil
	}
	text := ""
	if d.Type()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		text = fmt.Sprintf("link %q %x\n", rel, sha256.Sum256([]byte(target)))
	}
	info, err := os.Stat(path)
	if text != "" && (err != nil || !info.Mode().IsRegular()) {
		return text, nil // a link to a folder or to nothing
	}
	if err != nil {
		return "", err
	}
	sum, err := hashFile(path, info)
	if err != nil {
		return "", err
	}
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "exec"
	}
	return text + fmt.Sprintf("%s %q %s\n", kind, rel, sum), nil
}

func hashFile(path string, info fs.FileInfo) (string, error) {
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is neither a file nor a folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
