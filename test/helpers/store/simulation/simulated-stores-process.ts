/** Simulates stores in a process of its own and prints what they came to: `node simulated-stores-process.js <first seed> <count> [<ends after so many failed>]`. */
import { simulateStores } from "./simulated-stores.js";

const [first, count, mostFailed] = process.argv.slice(2).map(Number);
if (first === undefined || count === undefined) throw new Error("which seeds?");
console.log(JSON.stringify(await simulateStores(first, count, { mostFailed })));
