import type { FlowPrograms } from '../../../dataplane/fast-path/flow-programs.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { programFilters } from './fast-filters.ts';
import { openAttachedPrograms } from './learned-flows.ts';
import { type LiveFlows, type LiveWay, startLiveFlows } from './live-flows.ts';
import type { AttachedPod } from './scene-node.ts';
import { openTrial, type Trial, type TrialSpec } from './trial.ts';

/** A node whose agent has the fast path, with two Pods of different ENIs and learned flows. */
export type FastTrial = {
  readonly trial: Trial;
  readonly pods: readonly [AttachedPod, AttachedPod];
  /** As they are attached. */
  readonly programs: FlowPrograms;
  readonly ways: readonly LiveWay[];
  /** To the outside from each Pod, and between the two: all learned when this begins. */
  readonly flows: LiveFlows;
};

/** Runs with such a node, and closes it. */
export async function withFastTrial(spec: Partial<TrialSpec>, run: (scene: FastTrial) => Promise<void>): Promise<void> {
  const trial = await openTrial({
    ruleMode: 'compact',
    ipsPerEni: 2,
    ...spec,
    flags: { 'fast-path': 'bpf', ...spec.flags },
  });
  try {
    const pods = await podsOfTwoEnis(trial);
    await awaitFilters(trial);
    const [first, second] = pods;
    const { outside } = trial.vpc;
    const ways = [
      { name: 'to the outside', a: first, b: outside },
      { name: 'from the outside', a: outside, b: second },
      { name: 'between Pods', a: first, b: second },
    ];
    const flows = await startLiveFlows(ways);
    using programs = await openAttachedPrograms(trial.node.netns);
    try {
      await flows.learned(programs);
      await run({ trial, pods, programs, ways, flows });
    } finally {
      await flows.close();
    }
  } finally {
    await trial.close();
  }
}

/**
 * Waits until each ENI and each Pod's link has its filters. The kernel throws away what a link sends while it gets the place
 * of its first filter (qdisc_graft() deactivates the link's queues), so counted packets come after that.
 */
async function awaitFilters({ node, enis }: Trial): Promise<void> {
  const isDone = async (): Promise<boolean> => {
    const links = enis.length + (await node.hostVeths()).length;
    return (await programFilters(node.netns)).length === 2 * links;
  };
  await waitUntil(isDone, { what: 'filters on all links', timeoutMs: 60_000, everyMs: 100 });
}

/** Two Pods, the first of them on the first ENI and the other on the second. */
async function podsOfTwoEnis(trial: Trial): Promise<readonly [AttachedPod, AttachedPod]> {
  const pods: AttachedPod[] = [];
  const onEni = (eniId: string) => pods.find(({ ip }) => trial.vpc.eniOf(ip) === eniId);
  for (;;) {
    // Fails when all addresses are in use.
    pods.push(await trial.addPod());
    const [first, second] = [onEni('eni-1'), onEni('eni-2')];
    if (first === undefined || second === undefined) continue;
    for (const pod of pods) if (pod !== first && pod !== second) await trial.delete(pod);
    return [first, second];
  }
}
