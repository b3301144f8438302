#!/usr/bin/env node
// The command (package.json's bin). It is not compiled, so that `npx inspection-service` in a clone finds it before anything is built.
import { existsSync } from "node:fs";
import "./check-node.mjs";

const main = new URL("../dist/http/main.js", import.meta.url);
if (existsSync(main)) {
  void import(main.href);
} else {
  console.error(
    "inspection-service is not built yet: `npm install` builds it, `npm start` builds it and shows a demo.",
  );
  process.exitCode = 1;
}
