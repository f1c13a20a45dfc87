# sh run_logged.sh LOG COMMAND...: runs the command with what it says in LOG; shows it when there is
# an error or a warning in it, and is silent otherwise.
log=$1
shift
if "$@" > "$log" 2>&1; then
  if grep -qi 'warning' "$log"; then cat "$log" >&2; fi
else
  status=$?
  cat "$log" >&2
  exit $status
fi
