# Runs a command of PostgreSQL: on PATH, or where Debian keeps it.
PATH="$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)"
exec "$@"
