import test from 'ava';
import { assemble, type SourceLine } from '../../../bpf/assemble.ts';
import { disassemble } from '../../../bpf/disassemble.ts';
import { INSTRUCTION_BYTES } from '../../../bpf/instruction.ts';
import { FAST_PROGRAM } from '../../../dataplane/fast-path/fast-program.ts';
import { LEARN_PROGRAM } from '../../../dataplane/fast-path/learn-program.ts';
import { matchesGolden } from '../../support/golden.ts';

// The instructions that are loaded, with their bytes: whoever changes a program sees all of what that changes.

const MAPS = { flows4: 4, flows6: 6, epoch: 1, arrivals: 2 };

test('FAST_PROGRAM: has the instructions of the golden file', (t) => {
  matchesGolden(t, import.meta.url, 'fast.txt', listing(FAST_PROGRAM));
});

test('LEARN_PROGRAM: has the instructions of the golden file', (t) => {
  matchesGolden(t, import.meta.url, 'learn.txt', listing(LEARN_PROGRAM));
});

function listing(source: readonly SourceLine[]): string {
  const bytes = Buffer.from(assemble(source, MAPS));
  const lines = disassemble(bytes).map((line) => {
    const at = Number(line.split(':', 1)[0]) * INSTRUCTION_BYTES;
    return `${bytes.toString('hex', at, at + INSTRUCTION_BYTES)}  ${line}\n`;
  });
  return lines.join('');
}
