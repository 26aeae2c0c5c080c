import test from 'ava';
import type { OptionSpec } from '../../../cli/command/command.ts';
import { GLOBAL_OPTIONS } from '../../../cli/command/global-options.ts';
import { readCommandLine } from '../../../cli/program/read-command-line.ts';
import { ALL_COMMANDS } from '../../../cli/program/run-program.ts';

const GLOBALS = Object.entries<OptionSpec>(GLOBAL_OPTIONS);

test('COMMANDS: no two have one name', (t) => {
  const names = ALL_COMMANDS.map(({ name }) => name);
  t.is(new Set(names).size, names.length);
  t.true(names.length > 4);
});

for (const command of ALL_COMMANDS) {
  test(`${command.name}: its options take no name and no letter of another one`, (t) => {
    const all = [...GLOBALS, ...Object.entries(command.options)];
    const words = all.flatMap(([name, { alias }]) => (alias === undefined ? [name] : [name, alias]));
    t.deepEqual(
      words.filter((word, index) => words.indexOf(word) !== index),
      [],
    );
    for (const [name, { alias }] of Object.entries(command.options)) {
      t.regex(name, /^[a-z][a-z0-9-]+$/);
      t.true(alias === undefined || /^[a-zA-Z]$/.test(alias), name);
    }
  });

  test(`${command.name}: only its last words may be left out`, (t) => {
    const isOptional = Object.values(command.positionals).map((spec) => spec.isOptional === true);
    t.deepEqual(isOptional, [...isOptional].sort());
  });

  test(`${command.name}: its lines for help are one sentence without a full stop`, (t) => {
    const all = [command, ...Object.values(command.options), ...Object.values(command.positionals)];
    for (const { summary } of all) {
      t.regex(summary, /^[^\n]+[^.\n]$/);
    }
    t.true(command.description.trim() !== '');
  });

  test(`${command.name}: its examples are command lines that it takes`, (t) => {
    for (const { line } of command.examples) {
      const calls = [...line.matchAll(/tke-eni ((?:[^|;>)']|'[^']*')*)/g)].map(([, words = '']) => words.trim());
      t.true(calls.length > 0, line);
      for (const call of calls) {
        const words = call.split(/\s+/).map((word) => word.replaceAll("'", ''));
        const read = readCommandLine(words, ALL_COMMANDS);
        t.true(read.kind === 'run' && read.command.name === command.name, `${line}: ${JSON.stringify(read)}`);
      }
    }
  });
}
