// @ts-check
// How long WebSockets may take to open, all of them together: a server takes in some hundred a second.
export const OPENING_MS = 60000;
