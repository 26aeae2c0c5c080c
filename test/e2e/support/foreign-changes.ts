import type { ExecutionContext } from 'ava';
import { findViolations } from '../../support/invariants.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { AttachedPod } from './scene-node.ts';
import { openTrial, type Trial, type TrialSpec } from './trial.ts';

/** What another program does to a node's network; `pod` is one of those that run there. */
export type ForeignChange = { readonly does: (trial: Trial, pod: AttachedPod) => Promise<unknown> };

/**
 * Does each change while the agent is stopped, so that the checker can see that harm was done, and then while it runs.
 * Each time it is repaired by its notification, as the invariants and pings judge. Logs how fast.
 */
export async function expectRepairs(
  t: ExecutionContext,
  spec: TrialSpec,
  changes: Readonly<Record<string, ForeignChange>>,
): Promise<void> {
  t.timeout(240_000);
  const trial = await openTrial(spec);
  try {
    const pods = [await trial.addPod(), await trial.addPod(), await trial.addPod()];
    const [pod] = pods;
    if (pod === undefined) throw new Error('three Pods were made');
    const lines: string[] = [];
    for (const [where, change] of Object.entries(changes)) {
      await changeWhileStopped(t, trial, change, pod, where);
      await pings(t, trial, pods, `${where} while the agent was stopped`);
      const ms = await changeWhileRunning(trial, change, pod, where);
      await pings(t, trial, pods, where);
      lines.push(`${String(ms).padStart(6)} ms  ${where}`);
    }
    t.log([`figure: ${spec.ruleMode}: repaired after`, ...lines].join('\n'));
  } finally {
    await trial.close();
  }
}

/** Milliseconds until a setting has this value again. */
export async function restoredMs(trial: Trial, key: string, value: string): Promise<number> {
  const startMs = performance.now();
  await waitUntil(async () => (await trial.node.netns.run(['cat', `/proc/sys/net/${key}`])).trim() === value, {
    what: `${key} ${value}`,
    explain: () => trial.lastWords(),
  });
  return Math.round(performance.now() - startMs);
}

/** Milliseconds from the end of a change to the agent's last write, by its own log; 0 when it was faster than the change's own command. */
function repairMs(trial: Trial, sinceLog: number, changedAtMs: number): number {
  const times = trial.agent
    .logs()
    .slice(sinceLog)
    .split('\n')
    .filter((line) => line.includes('"kernel changed"'))
    .map((line) => Date.parse(/"time":"([^"]+)"/.exec(line)?.[1] ?? ''));
  return Math.max(0, Math.max(...times) - changedAtMs);
}

async function pings(t: ExecutionContext, trial: Trial, pods: readonly AttachedPod[], where: string): Promise<void> {
  const ways = pods.flatMap((pod, index) => [
    pod.netns.ping(trial.vpc.outside.ip),
    trial.node.netns.ping(pod.ip),
    pod.netns.ping(pods[(index + 1) % pods.length]?.ip ?? ''),
    ...(pod.ips[1] === undefined ? [] : [pod.netns.ping(trial.vpc.outside.ipv6), trial.node.netns.ping(pod.ips[1])]),
  ]);
  t.false((await Promise.all(ways)).includes(false), `${where}: a ping was not answered`);
}

async function changeWhileStopped(
  t: ExecutionContext,
  trial: Trial,
  change: ForeignChange,
  pod: AttachedPod,
  where: string,
) {
  trial.agent.kill('SIGSTOP');
  try {
    await change.does(trial, pod);
    t.not((await findViolations(trial.scope())).length, 0, `${where}: the checker sees no harm`);
  } finally {
    trial.agent.kill('SIGCONT');
  }
  await trial.settle(`after ${where} while the agent was stopped`);
}

async function changeWhileRunning(
  trial: Trial,
  change: ForeignChange,
  pod: AttachedPod,
  where: string,
): Promise<number> {
  const logged = trial.agent.logs().length;
  await change.does(trial, pod);
  const changedAtMs = Date.now();
  // The checker may look before the agent did: without a write of its own nothing is repaired.
  await waitUntil(() => trial.agent.logs().slice(logged).includes('"kernel changed"'), {
    what: `a repair after ${where}`,
    explain: () => trial.lastWords(),
  });
  await trial.settle(`after ${where}`);
  return repairMs(trial, logged, changedAtMs);
}
