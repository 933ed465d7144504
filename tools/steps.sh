# Sourced by scripts that run several steps: runs them all, whatever fails, and sums up at the end.
#
#   step "title" command args...    runs the command, with a headline and its time
#   finish                          prints one line per step; exits 1 if any failed
# shellcheck shell=bash
step_names=()
step_results=()

step() {
  local title=$1 start=$SECONDS code=0
  shift
  printf '\n=== %s\n' "$title"
  "$@" </dev/null || code=$?
  step_names+=("$title")
  if [ "$code" -eq 0 ]; then
    step_results+=("ok      $((SECONDS - start)) s")
  else
    step_results+=("FAILED  $((SECONDS - start)) s, exit code $code")
  fi
}

finish() {
  local i failed=0
  printf '\n=== summary of %s\n' "$(basename "$0")"
  for i in "${!step_names[@]}"; do
    printf '%-55s %s\n' "${step_names[$i]}" "${step_results[$i]}"
    [[ ${step_results[$i]} == ok* ]] || failed=1
  done
  exit "$failed"
}
