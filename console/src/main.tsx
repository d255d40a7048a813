import { render } from "preact";
import { App } from "./app";
import { showTurns } from "./ui/directions";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/window.css";
import "./styles/playground.css";

showTurns();
render(<App />, document.getElementById("app") as HTMLElement);
