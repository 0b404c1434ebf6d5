"use strict";

fetch("healthz").then(answer => answer.json()).then(health => {
	const reasons = (health.reasons || []).map(reason => `${reason.gate}: ${reason.text}`);
	document.getElementById("health").textContent = [health.status, ...reasons].join(", ");
});
