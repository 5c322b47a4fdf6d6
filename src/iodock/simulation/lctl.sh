#!/bin/sh
# SYNTHETIC: answers as lctl does, out of the simulated server's tree in which it lies.
# get_param [-n] PATTERN..., list_param PATTERN..., set_param job_stats=clear, set_param job_cleanup_interval=N
IFS=''
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
requests=$root/var/lib/simulation/requests

complain() {
    printf 'error: %s\n' "$1" >&2
    status=2
}

# The files that a pattern means: dots are slashes, and job_stats alone is that of every target.
found() {
    pattern=$(printf '%s' "$1" | tr . /)
    any=
    for prefix in '' '*/' '*/*/'; do
        for place in proc/fs/lustre sys/kernel/debug/lustre sys/fs/lustre; do
            for path in "$root/$place/"$prefix$pattern; do
                [ -e "$path" ] || continue
                any=yes
                printf '%s\n' "$path"
            done
        done
        [ -z "$any" ] || return 0
    done
    return 1
}

# The parameter's name of a file.
named() {
    name=${1#"$root"/}
    for place in proc/fs/lustre sys/kernel/debug/lustre sys/fs/lustre; do
        name=${name#"$place"/}
    done
    printf '%s' "$name" | tr / .
}

show() {
    [ -f "$1" ] || return 0
    if [ "$form" = value ]; then
        cat "$1"
    elif { read -r _ && read -r _; } <"$1"; then
        printf '%s=\n' "$(named "$1")"
        cat "$1"
    else
        printf '%s=%s\n' "$(named "$1")" "$(cat "$1")"
    fi
}

# What is asked for here is done to the file at once, and by the simulator with its next step.
change() {
    case $(basename "$1")=$2 in
    job_stats=clear)
        mkdir -p "$(dirname "$requests")" && printf 'clear %s\n' "$(basename "$(dirname "$1")")" >>"$requests"
        printf 'job_stats:\n' >"$1.cleared" && mv "$1.cleared" "$1"
        ;;
    job_cleanup_interval=*[!0-9]* | job_cleanup_interval=)
        complain "set_param: setting $1=$2: Invalid argument"
        return
        ;;
    job_cleanup_interval=*)
        printf '%s\n' "$2" >"$1.changed" && mv "$1.changed" "$1"
        ;;
    *)
        complain "set_param: setting $1=$2: not simulated"
        return
        ;;
    esac
    [ "$form" = value ] || printf '%s=%s\n' "$(named "$1")" "$2"
}

each() {
    paths=$(found "$2") || {
        complain "$1: param_path '$2': No such file or directory"
        return
    }
    while read -r path; do
        case $1 in
        get_param) [ "$form" = name ] && printf '%s\n' "$(named "$path")" || show "$path" ;;
        list_param) printf '%s\n' "$(named "$path")" ;;
        set_param) change "$path" "$3" ;;
        esac
    done <<END
$paths
END
}

status=0
form=both
verb=$1
[ $# -eq 0 ] || shift
case $verb in
get_param | list_param | set_param) ;;
*)
    printf 'usage: lctl get_param|list_param|set_param ... (simulated; knows no other commands)\n' >&2
    exit 2
    ;;
esac
while [ $# -gt 0 ]; do
    case $1 in
    -n) form=value ;;
    -N) form=name ;;
    -*) complain "$verb: unknown option $1 (simulated)" ;;
    *=*) each "$verb" "${1%%=*}" "${1#*=}" ;;
    *) each "$verb" "$1" '' ;;
    esac
    shift
done
exit $status
