// Provided by k6, but missing from its types.
declare const console: { info(text: string): void };
declare function require(path: string): any;
