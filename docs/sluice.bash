# SPDX-License-Identifier: GPL-2.0
# bash completion of sluice(8) and of the programs sluice-NAME: the command itself knows its words, see user/cli/cmd_complete.c.

_sluice() {
	local IFS=$' \t\n' typed=${COMP_LINE:0:COMP_POINT} words word i program=$1 command=()
	# shellcheck disable=SC2162 # a backslash quotes, as it does when bash puts a word in
	read -a words <<<"$typed"
	[[ $typed == *[[:space:]] && $typed != *\\[[:space:]] ]] && words+=('')
	word=${words[-1]}
	if [[ ${1##*/} == sluice-* ]]; then # completed as `sluice NAME`
		command=("${1##*sluice-}")
		program=${1%-"${command[0]}"}
		[[ ${command[0]} != replay ]] || command=() # the words begin with one of its commands
	fi
	mapfile -t COMPREPLY < <("$program" complete -- "${command[@]}" "${words[@]:1}" 2>/dev/null)
	if [[ ${COMPREPLY[*]} == FILE ]]; then
		COMPREPLY=()
		compopt -o default
	elif [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
		# bash completes only the part after the last colon
		COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
	fi
	# names may have signs of the shell, as 'a;b', and bash puts the words in as they are
	for i in "${!COMPREPLY[@]}"; do
		printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]}"
	done
}

complete -F _sluice sluice sluice-replay sluice-serve sluice-share sluice-top
