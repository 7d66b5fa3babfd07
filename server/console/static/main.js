// The frame of all pages: navigation, login, theme, and the page of the address.
import { ApiError, call, login, logout, onLoginNeeded } from "./api.js";
import { Button, Empty, ErrorNote, Field, Loading, Notices, Panel, notify } from "./components.js";
import { restart, useLive } from "./live.js";
import { ROUTES, useRoute } from "./router.js";
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./ui.js";
import { forgetMe, useMe } from "./me.js";

const THEMES = ["system", "light", "dark"];

function ThemeButton() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? "system");
  const turn = () => {
    const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    if (next === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("runstep-theme", next);
    } catch {
      // Nothing is stored; the choice holds until the page is left.
    }
    setTheme(next);
  };
  return html`<${Button} onClick=${turn} label=${`Theme: ${theme}. Change`}>Theme: ${theme}<//>`;
}

const LIVE_TEXT = { open: "Live", connecting: "Connecting", lost: "Not connected", closed: "Paused" };

function LiveMark() {
  const { status } = useLive();
  return html`<span class=${`live-mark ${status}`}><i></i>${LIVE_TEXT[status]}</span>`;
}

function Side({ section, onLogin, onLogout }) {
  const me = useMe();
  return html`<header class="side"><div class="side-in">
    <a class="brand" href="#/overview">Runstep</a>
    <nav aria-label="Pages"><ul>${ROUTES.filter((route) => route[2]).map(([path, , text]) => html`<li key=${path}>
      <a href=${`#/${path}`} aria-current=${section === path ? "page" : null}>${text}</a></li>`)}</ul></nav>
    <div class="side-foot">
      <${LiveMark} />
      ${me?.authentication && (me.name
        ? html`<span class="muted">${me.name}</span><${Button} onClick=${onLogout}>Log out<//>`
        : html`<${Button} onClick=${onLogin}>Log in<//>`)}
      <${ThemeButton} />
    </div></div>
  </header>`;
}

function Login({ onDone }) {
  const [state, setState] = useState({ busy: false, error: null });
  const submit = async (event) => {
    event.preventDefault();
    const input = event.target.elements.credential;
    setState({ busy: true, error: null });
    try {
      await login(input.value.trim());
      input.value = "";
      onDone();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<main class="login" id="main"><${Panel} title="Log in to Runstep">
    <form class="stack" onSubmit=${submit}>
      <${Field} label="Key or token" hint="It is sent once, in the body of a request. The browser keeps only a cookie that this page's scripts can't read.">
        ${(field) => html`<input ...${field} name="credential" type="password" autocomplete="current-password" required autofocus spellcheck="false" />`}<//>
      <${ErrorNote} error=${state.error} />
      <div class="row"><${Button} type="submit" kind="primary" busy=${state.busy}>${state.busy ? "Logging in…" : "Log in"}<//><${ThemeButton} /></div>
    </form><//></main>`;
}

/** The page of a route; its module is loaded when it is first shown. */
function Page({ route, hash }) {
  const [loaded, setLoaded] = useState({ name: "", View: null, error: null });
  const [failure, reset] = useErrorBoundary();
  const first = useRef(true);
  useEffect(() => {
    let current = true;
    import(`./pages/${route.page}.js`).then(
      (module) => current && setLoaded({ name: route.page, View: module.default, error: null }),
      () => current && setLoaded({ name: route.page, View: null, error: new ApiError(0, "", "This page could not be loaded from the server.") }),
    );
    return () => { current = false; };
  }, [route.page]);
  const ready = loaded.name === route.page;
  const path = hash.split("?")[0];
  useEffect(() => {
    if (failure) reset();
    if (!ready) return;
    const heading = document.querySelector("main h1");
    document.title = heading ? `${heading.textContent} · Runstep` : "Runstep";
    if (first.current) first.current = false;
    else heading?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [path, ready]);
  if (failure) return html`<${ErrorNote} error=${failure} title="This page met an error of its own." retry=${reset} />`;
  if (!ready) return html`<${Loading} />`;
  if (loaded.error) return html`<${ErrorNote} error=${loaded.error} retry=${() => location.reload()} />`;
  return html`<${loaded.View} key=${path} params=${route.params} query=${route.query} />`;
}

function Shell() {
  const { hash, route } = useRoute();
  const [refused, setRefused] = useState(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => onLoginNeeded((error) => setRefused(error)), []);
  if (refused) {
    const done = () => {
      setRefused(null);
      setTurn(turn + 1);
      forgetMe();
      restart();
    };
    return html`<${Login} onDone=${done} /><${Notices} />`;
  }
  const enter = () => setRefused(new ApiError(401, "", ""));
  const leave = async () => {
    await logout().catch((error) => notify(error.message, "bad"));
    forgetMe();
    enter();
  };
  return html`<a class="skip" href="#main" onClick=${(event) => {
    event.preventDefault();
    document.querySelector("main h1")?.focus();
  }}>Skip to the page</a>
  <div class="frame" key=${turn}>
    <${Side} section=${route?.section} onLogin=${enter} onLogout=${leave} />
    <main id="main"><div class="page">${route
      ? html`<${Page} route=${route} hash=${hash} />`
      : html`<${Empty} title="There is no such page."><a href="#/overview">To the overview</a><//>`}</div></main>
  </div><${Notices} />`;
}

render(html`<${Shell} />`, document.getElementById("app"));
