// Long: it loads more than a hundred programs, and runs the table of packets against each.
import test from 'ava';
import type { SourceLine } from '../../../bpf/assemble.ts';
import { isBpfError } from '../../../bpf/bpf-error.ts';
import { jump, label } from '../../../bpf/source.ts';
import { FAST_PROGRAM } from '../../../dataplane/fast-path/fast-program.ts';
import { LEARN_PROGRAM } from '../../../dataplane/fast-path/learn-program.ts';
import { closingFaults } from './closing-table.ts';
import { packetFaults } from './packet-table.ts';
import { ProgramBench } from './program-bench.ts';

// Each check of the two programs is there for a packet of the table: without it, or turned round, a packet goes wrong or the
// verifier refuses the program.

const SOURCES = { fast: FAST_PROGRAM, learn: LEARN_PROGRAM } as const;

const NO_TAG = 'a test run gives no packet a tag that the network card took out';
const IS_LINEAR =
  'in a test run all of a packet is in the linear part, and a pull that fails leaves too few bytes for the next comparison';
const OTHER_REFUSES = 'the other program refuses such a packet too, and the protocol is in the key';

/** Changes that no packet of the table can show, each as often as there are such lines, and why. */
const EQUIVALENT: readonly (readonly [change: string, why: string])[] = [
  ['fast: if r1 != 0 goto out, left out', NO_TAG],
  ['learn: if r1 != 0 goto out, left out', NO_TAG],
  ['fast: if r4 <= r3 goto start-ready, left out', 'it only spares a pull'],
  ['fast: if r4 <= r3 goto ipv6-ready, left out', 'it only spares a pull'],
  ...repeated(2, 'fast: if r0 != 0 goto out, left out', IS_LINEAR),
  ...repeated(2, 'fast: if r0 != 0 goto out, turned round', IS_LINEAR),
  ...repeated(2, 'fast: if r1 != 6 goto out, left out', OTHER_REFUSES),
  ...repeated(2, 'learn: if r1 != 6 goto out, left out', OTHER_REFUSES),
  ['learn: if r2 == 0 goto out, left out', 'no packet comes in by an interface of number 0, so none finds the flow'],
  ['learn: if r1 == 0 goto out, left out', 'check_mtu() knows the MTU of each interface that a packet leaves by'],
];

function repeated(times: number, change: string, why: string): (typeof EQUIVALENT)[number][] {
  return Array.from({ length: times }, () => [change, why] as const);
}

type Mutant = { readonly what: string; readonly source: readonly SourceLine[] };

function mutantsOf(name: string, source: readonly SourceLine[]): readonly Mutant[] {
  return source.flatMap((line, at): readonly Mutant[] => {
    if (line.kind !== 'jump' || line.when === undefined) return [];
    const { register, is, operand } = line.when;
    const what = `${name}: if ${register} ${is} ${operand} goto ${line.target}`;
    const turned: readonly SourceLine[] = [{ ...line, target: 'turned' }, jump(line.target), label('turned')];
    return [
      { what: `${what}, left out`, source: source.toSpliced(at, 1) },
      { what: `${what}, turned round`, source: source.toSpliced(at, 1, ...turned) },
    ];
  });
}

test('each check of the programs is missed by a packet or by the verifier', (t) => {
  using bench = new ProgramBench();
  t.deepEqual([...packetFaults(bench), ...closingFaults(bench)], []);
  const survivors: string[] = [];
  let refused = 0;
  const mutants = (['fast', 'learn'] as const).flatMap((which) =>
    mutantsOf(which, SOURCES[which]).map((mutant) => ({ ...mutant, which })),
  );
  for (const { what, source, which } of mutants) {
    try {
      bench.withProgram(which, source, () => {
        if (packetFaults(bench).length === 0 && closingFaults(bench).length === 0) survivors.push(what);
      });
    } catch (error) {
      if (!isBpfError(error, 'EACCES', 'EINVAL')) throw error;
      refused += 1;
    }
  }
  t.log(`figure: ${mutants.length} changes, ${refused} of them refused by the verifier`);
  t.deepEqual(survivors.toSorted(), EQUIVALENT.map(([change]) => change).toSorted());
});
