import test, { type ExecutionContext } from 'ava';
import { explainNode as explain } from '../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../inspection/explain/explanation.ts';
import { firstBroken, report } from './support/explanation-text.ts';
import { placeOf } from './support/fault-trial.ts';
import { GR_FAULTS, type GrFault } from './support/gr-faults.ts';
import { GATEWAY, type GrScene, openGrScene } from './support/gr-scene.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';

// GlobalRoute Pods beside a Pod of an ENI and one with an ENI of its own. What `explain` says is judged by packets; `diff` and `doctor`
// find the same harm, and `repair` takes it away.

/** A ping of a broken way: an answer takes microseconds, a lost first solicitation a second. */
const LOST_AFTER_MS = 1_500;
const NAMES = ['gr', 'other', 'eni', 'own'] as const;

async function explained({ trial }: GrScene, subject: string, to: string): Promise<Explanation> {
  const { netns, stateDir } = placeOf(trial);
  const context = { global: { netns: netns.name, stateDir, hostRoot: '/' } };
  return (await explain(context, { subject, to, from: undefined })).explanation;
}

const CASES = [
  { ruleMode: 'compact', wiring: 'bridge' },
  { ruleMode: 'per-pod', wiring: 'bridge' },
  { ruleMode: 'compact', wiring: 'routed' },
  { ruleMode: 'per-pod', wiring: 'routed' },
] as const;

for (const { ruleMode, wiring } of CASES) {
  const name = `explain: GlobalRoute, ${ruleMode}, ${wiring}`;
  test.serial(name, async (t) => {
    t.timeout(240_000);
    const scene = await openGrScene(ruleMode, wiring);
    const { trial, pods } = scene;
    try {
      for (const from of NAMES) {
        for (const to of NAMES) {
          if (from === to) continue;
          const explanation = await explained(scene, pods[from].ip, pods[to].ip);
          t.deepEqual(firstBroken(explanation), [], report(explanation));
          t.deepEqual(explanation.findings, [], report(explanation));
          t.true(await pods[from].netns.ping(pods[to].ip), `${from} to ${to}`);
        }
      }
      const { outside } = trial.vpc;
      const out = await explained(scene, pods.gr.ip, outside.ip);
      t.deepEqual(out.findings, [], report(out));
      t.true(await pods.gr.netns.ping(outside.ip));
      t.regex(report(out), /the source (becomes|stays)/);
      t.regex(
        report(out),
        wiring === 'bridge' ? /bridge cbr0, port eni/ : /of podCIDR 172\.20\.0\.0\/26 of this node, routed/,
      );
      const node = await explained(scene, pods.gr.ip, GATEWAY);
      if (wiring === 'bridge') t.deepEqual(firstBroken(node), [], report(node));
      const { document } = await askCli(placeOf(trial), 'graph', pods.gr.ip);
      const steps = listOf(document, 'paths').flatMap((path) => listOf(path, 'steps'));
      t.deepEqual(
        steps
          .filter((step) => step['kind'] !== 'sysctl' && step['kind'] !== 'eni' && step['node'] === undefined)
          .map(({ title }) => title),
        [],
        'the graph has a box for each hop',
      );
      t.true(listOf(document, 'groups').some(({ id, subtitle }) => id === 'bridge' && subtitle === '2 Pods'));
      if (wiring === 'routed') return;
      trial.vpc.allowRepeatedPackets();
      for (const fault of GR_FAULTS) await tryFault(t, ruleMode, fault, scene);
    } finally {
      await trial.close();
    }
  });
}

async function tryFault(
  t: ExecutionContext,
  ruleMode: 'compact' | 'per-pod',
  { name, inject, undo, finds, ...fault }: GrFault,
  scene: GrScene,
): Promise<void> {
  const place = placeOf(scene.trial);
  const [from, to] = [scene.pods[fault.from], scene.pods[fault.to]];
  const isBroken = fault.breaksPackets[ruleMode];
  await inject(scene);
  t.is(await from.netns.ping(to.ip, isBroken ? { waitMs: LOST_AFTER_MS } : {}), !isBroken, `${name}: a packet`);
  const explanation = await explained(scene, from.ip, to.ip);
  t.is(firstBroken(explanation).length > 0, isBroken, `${name}\n${report(explanation)}`);
  const { explain: id } = finds;
  if (id !== undefined) t.true(idsOf(explanation.findings).includes(id), `${name}\n${report(explanation)}`);
  if (isBroken) t.is(firstBroken(explanation)[0], id, `${name}\n${report(explanation)}`);
  const rule = explanation.findings.find((found) => found.id === 'rule-missing');
  if (rule !== undefined) t.regex(rule.why, ruleMode === 'per-pod' ? /^Loop:/ : /^Detour:/);
  const diff = (await askCli(place, 'diff')).document;
  if (finds.diff !== undefined) t.true(idsOf(listOf(diff, 'differences')).includes(finds.diff), `${name}: diff`);
  const doctor = (await askCli(place, 'doctor')).document;
  if (finds.doctor !== undefined) t.true(JSON.stringify(doctor).includes(`"${finds.doctor}"`), `${name}: doctor`);
  await undo?.(scene);
  const repaired = await runCli(place, 'repair');
  t.is(repaired.code, 0, `${name}\n${repaired.stdout}${repaired.stderr}`);
  t.true(await from.netns.ping(to.ip), `${name}: repaired`);
  t.is((await runCli(place, 'diff')).code, 0, `${name}: no difference is left`);
}

function idsOf(findings: readonly { readonly id?: unknown }[]): readonly unknown[] {
  return findings.map(({ id }) => id);
}
