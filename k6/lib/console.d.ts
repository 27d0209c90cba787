// k6 has it; its types do not.
declare const console: { info(text: string): void };
