import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { textWidth } from '../../../cli/output/cell-text.ts';
import { renderCommandHelp, renderHelp } from '../../../cli/output/render-help.ts';
import { ALL_COMMANDS } from '../../../cli/program/run-program.ts';
import { SAMPLE, WALK } from '../program/fixtures.ts';

const golden = (name: string): string => readFileSync(join(import.meta.dirname, 'golden', name), 'utf8');

for (const width of [80, 160]) {
  test(`renderHelp: is as recorded at ${width} columns`, (t) => {
    t.is(renderHelp(SAMPLE, { width, isColored: false }), golden(`help-${width}.txt`));
  });

  test(`renderCommandHelp: is as recorded at ${width} columns`, (t) => {
    t.is(renderCommandHelp(WALK, { width, isColored: false }), golden(`walk-${width}.txt`));
  });

  test(`renderCommandHelp: no command's help is wider than ${width} columns, examples apart`, (t) => {
    for (const command of ALL_COMMANDS) {
      const examples = command.examples.map(({ line }) => `  ${line}`);
      const lines = renderCommandHelp(command, { width, isColored: false }).split('\n');
      const long = lines.filter((line) => textWidth(line) > width && !examples.includes(line));
      t.deepEqual(long, [], command.name);
    }
  });
}

test('renderHelp: colours titles only, and nothing without colours', (t) => {
  const colored = renderHelp(SAMPLE, { width: 80, isColored: true });
  t.true(colored.includes('\u001b[1mCommands\u001b[22m\n'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is removed.
  t.is(colored.replace(/\u001b\[\d+m/g, ''), renderHelp(SAMPLE, { width: 80, isColored: false }));
});
