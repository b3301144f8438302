import { render } from "preact";
import { connectLive } from "./data/live.js";
import { startRouter } from "./router.js";
import "./styles/tokens.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/tables.css";
import "./styles/run.css";
import "./styles/now.css";
import "./styles/lists.css";
import "./styles/charts.css";
import { Shell } from "./ui/shell.js";

startRouter();
connectLive();
render(<Shell />, document.getElementById("console") as HTMLElement);
