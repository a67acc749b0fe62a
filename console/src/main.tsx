/** Entry of the console: chooses language and theme, then mounts the application. */
import { render } from "preact";
import { App } from "./app";
import { loadCatalogue } from "./i18n";
import { applyTheme } from "./theme";
import "./styles/index.css";

const root = document.getElementById("console");
applyTheme();
if (root) void loadCatalogue().then(() => render(<App />, root));
