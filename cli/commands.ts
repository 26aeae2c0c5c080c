import type { Command } from './command.ts';

/** Every command, in the order of the help. Each line is added by who writes the command. */
export const COMMANDS: readonly Command[] = [];
