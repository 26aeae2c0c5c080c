import test from 'ava';
import { CHECKS } from '../../../../cli/commands/doctor/checks.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { decideSelection, evaluateChecks } from '../../../../cli/commands/doctor/evaluate-checks.ts';
import { doctorDocument, renderDoctor } from '../../../../cli/commands/doctor/render-doctor.ts';
import { CATALOGUE, finding } from '../../../../inspection/catalogue/catalogue.ts';
import { known } from '../../../../inspection/node/known.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { NODE_FAULTS } from '../../../e2e/support/node-faults.ts';
import { matchesGolden } from '../../../support/golden.ts';
import { doctorFacts, nodeWith, nodeWithSysctl } from './facts.ts';

const ALL = decideSelection(CHECKS, [], []);

/** Some of each weight, skips included. */
function sickFacts(): DoctorFacts {
  const node = nodeWith(
    ({ links }) => ({ links: links.map((link) => (link.ifindex === 3 ? { ...link, flags: 0 } : link)) }),
    nodeWithSysctl('net.ipv4.conf.eth2.rp_filter', '1'),
  );
  return doctorFacts({
    node,
    networkd: known({
      hasSystemd: true,
      isActive: true,
      version: 249,
      conf: [],
      networks: [],
      links: [],
      drivers: new Map(),
    }),
    kernel: known({
      release: '5.10.0-18-amd64',
      hasIpv6: true,
      conntrack: { count: 1_000, max: 262_144, drop: 12, earlyDrop: 3, insertFailed: 2 },
      neigh: { ipv4: undefined, ipv6: undefined },
    }),
  });
}

for (const width of [80, 160]) {
  test(`renderDoctor: is as in the golden file at ${width} columns`, (t) => {
    const layout = { width, isColored: false, isWide: false };
    matchesGolden(t, import.meta.url, `doctor-${width}.txt`, renderDoctor(evaluateChecks(ALL, sickFacts()), layout));
  });
}

test('renderDoctor: has each check with what it saw when it may be wide', (t) => {
  const layout = { width: 80, isColored: false, isWide: true };
  matchesGolden(t, import.meta.url, 'doctor-wide.txt', renderDoctor(evaluateChecks(ALL, sickFacts()), layout));
});

test('renderDoctor: says in one line that nothing is wrong', (t) => {
  const text = renderDoctor(evaluateChecks(ALL, doctorFacts()), { width: 80, isColored: false, isWide: false });
  t.regex(text, /^(skipped .*\n)+\d+ checks, nothing wrong, \d+ skipped\n$/);
});

test('renderDoctor: colours what is wrong, and only when asked to', (t) => {
  const diagnosis = evaluateChecks(ALL, sickFacts());
  const plain = renderDoctor(diagnosis, { width: 80, isColored: false, isWide: true });
  const colored = renderDoctor(diagnosis, { width: 80, isColored: true, isWide: true });
  t.true(colored.includes('\u001b[31merror'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours are made of
  t.is(colored.replaceAll(/\u001b\[\d+m/g, ''), plain);
});

test('renderDoctor: tells three of many alike, and how many more there are', (t) => {
  const rule = { family: 2, tos: 0, action: 1, flags: 0, table: 254, protocol: 3, src: '192.168.0.0/16', unknown: [] };
  const node = nodeWith(({ rules }) => ({
    rules: [...rules, ...Array.from({ length: 9 }, (_, at) => ({ ...rule, priority: 1536, tos: at * 4 }))],
  }));
  const text = renderDoctor(evaluateChecks(ALL, doctorFacts({ node })), { width: 80, isColored: false, isWide: false });
  t.is(text.match(/^warning {2}foreign-rule-priority/gm)?.length, 3);
  t.regex(text, /foreign-rule-priority: 6 more/);
});

test('doctorDocument: counts what it lists', (t) => {
  const document = JSON.parse(JSON.stringify(doctorDocument(evaluateChecks(ALL, sickFacts()))));
  t.like(document.summary, { checks: CHECKS.length, errors: 2, warnings: 1, infos: 1 });
  t.is(document.findings.length, 4);
  t.deepEqual(
    document.checks.flatMap(({ findings = [] }: { findings?: string[] }) => findings).sort(),
    document.findings.map(({ id }: { id: string }) => id).sort(),
  );
});

test('evaluateChecks: tells two rules of one kind apart, and one fault once: what the judge found belongs to one check', (t) => {
  const rule = { family: 2, tos: 0, action: 1, flags: 0, table: 254, protocol: 3, unknown: [] };
  const srcs = ['192.168.1.0/24', '192.168.2.0/24'];
  const node = nodeWith(({ rules }) => ({
    rules: [...rules, ...srcs.map((src) => ({ ...rule, priority: 1537, src }))],
  }));
  const { findings, results } = evaluateChecks(ALL, doctorFacts({ node }));
  t.deepEqual(
    findings.map(({ id, what }) => [id, srcs.find((src) => what.includes(src))]),
    srcs.map((src) => ['foreign-rule-priority', src]),
  );
  const finders = results.filter(({ verdict }) => verdict.kind === 'done' && verdict.findings.length > 0);
  t.deepEqual(
    finders.map(({ check }) => check.id),
    ['rules'],
  );
});

test('evaluateChecks: what a program set for all Pods is one finding with all of them as its subjects', (t) => {
  const assessed = ['a', 'b', 'c'].map((name) =>
    finding('rp-filter-off', { what: `rp_filter of eni${name} is off`, fix: [], subjects: [`link:${name}`] }),
  );
  const { findings } = evaluateChecks(ALL, { ...doctorFacts(), assessed });
  t.deepEqual(
    findings.map(({ id, what, subjects }) => [id, what, subjects]),
    [['rp-filter-off', 'rp_filter of enia is off; and so for 2 more Pods', ['link:a', 'link:b', 'link:c']]],
  );
});

test('decideSelection: takes ids of checks and of findings, with commas', (t) => {
  const only = decideSelection(CHECKS, ['marks,rp-filter-strict'], []);
  t.deepEqual(
    only.checks.map(({ id }) => id),
    ['marks', 'rp-filter', 'differences'],
  );
  const found = evaluateChecks(only, sickFacts()).findings.map(({ id }) => id);
  t.deepEqual(found, ['rp-filter-strict']);
  const skip = decideSelection(CHECKS, [], ['networkd', 'eni-down']);
  t.false(skip.checks.some(({ id }) => id === 'networkd'));
  t.deepEqual(
    evaluateChecks(skip, sickFacts()).findings.map(({ id }) => id),
    ['rp-filter-strict', 'conntrack-pressure'],
  );
});

test('decideSelection: refuses ids that are none, all at once', (t) => {
  const error = t.throws(() => decideSelection(CHECKS, ['nope', 'marks'], ['neither']), { instanceOf: UserError });
  t.is(error?.code, 'USAGE');
  t.regex(error?.message ?? '', /"nope", "neither"/);
});

test('CHECKS: each id is there once, and every finding of theirs is in the catalogue', (t) => {
  t.is(new Set(CHECKS.map(({ id }) => id)).size, CHECKS.length);
  const ids = new Set(Object.keys(CATALOGUE));
  t.deepEqual(
    CHECKS.flatMap(({ finds }) => finds).filter((id) => !ids.has(id)),
    [],
  );
});

test('CHECKS: what the faults of the whole CLI are called is among what they find', (t) => {
  const findable: ReadonlySet<string> = new Set(CHECKS.flatMap(({ finds }) => finds));
  t.deepEqual(
    NODE_FAULTS.flatMap(({ expects }) => [expects.diff, expects.doctor ?? expects.diff]).filter(
      (id) => !findable.has(id),
    ),
    [],
  );
});
