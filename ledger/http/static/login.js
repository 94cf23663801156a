// Takes the token from the fragment of a login link: a fragment is never sent, so it stands in no server's log.

const token = decodeURIComponent(location.hash.slice(1));
if (token) {
  history.replaceState(null, "", location.pathname + location.search);
  document.getElementById("token").value = token;
  document.getElementById("login").requestSubmit();
}
