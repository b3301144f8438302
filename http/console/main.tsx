import { render } from "preact";
import { connectLive } from "./data/live.js";
import { startRouter } from "./router.js";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/pages.css";
import { Shell } from "./ui/shell.js";

startRouter();
connectLive();
render(<Shell />, document.getElementById("console") as HTMLElement);
