import { render } from "preact";
import { App } from "./app";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/window.css";
import "./styles/playground.css";

render(<App />, document.getElementById("app") as HTMLElement);
