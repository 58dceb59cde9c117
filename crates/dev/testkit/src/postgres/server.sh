# A PostgreSQL server in a folder of its own, until standard input ends. Writes the folder when the
# server is ready. $1: the folder of the programs, $2: the superuser, $3: the password.
set -u
umask 077
# Short, since the address of a Unix socket is.
dir=$(mktemp -d -p /tmp) || exit 1
as() { "$@"; }

end() {
    as "$1/pg_ctl" stop -D "$dir/data" -m immediate -s >/dev/null 2>&1
    cd / && rm -rf "$dir"
}
trap 'end "$1"' EXIT
trap 'exit 1' HUP INT TERM
# The process that waits for the folder may have ended.
trap '' PIPE

cd "$dir" || exit 1
printf '%s\n' "$3" >password
if [ "$(id -u)" = 0 ]; then
    # The server refuses to run as root.
    user=$(id -un postgres 2>/dev/null || echo nobody)
    group=$(id -gn "$user")
    chown -R "$user:$group" "$dir"
    as() { setpriv --reuid="$user" --regid="$group" --clear-groups -- "$@"; }
fi

{
    as "$1/initdb" -D data -U "$2" --pwfile=password --auth=scram-sha-256 --encoding=UTF8 \
        --locale=C --no-sync --no-instructions &&
        # The data need not outlive the machine.
        as "$1/pg_ctl" start -D data -w -t 600 -s -l log \
            -o "-h '' -k $dir -F -N 300 -c shared_buffers=32MB -c autovacuum=off"
} >setup 2>&1 </dev/null || {
    cat setup log >&2
    exit 1
}

echo "$dir"
# Closes the outputs, so that a caller that reads them to their end does not wait for the server.
exec >/dev/null 2>&1
cat >/dev/null
