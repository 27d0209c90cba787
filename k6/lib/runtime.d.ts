// k6 has them; its types do not.
declare const console: { info(text: string): void };
declare function require(path: string): any;
