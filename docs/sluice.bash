# SPDX-License-Identifier: GPL-2.0
# bash completion of sluice(8): the command itself knows its words, see user/cli/cmd_complete.c.

_sluice() {
	local typed=${COMP_LINE:0:COMP_POINT} words word
	read -ra words <<<"$typed"
	[[ $typed == *[[:space:]] ]] && words+=('')
	word=${words[-1]}
	mapfile -t COMPREPLY < <("$1" complete -- "${words[@]:1}" 2>/dev/null)
	if [[ ${COMPREPLY[*]} == FILE ]]; then
		COMPREPLY=()
		compopt -o default
	elif [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
		# bash takes what stands behind the last colon for the word
		COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
	fi
}

complete -F _sluice sluice
