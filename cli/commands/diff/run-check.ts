import { compareNode } from '../../../inspection/judge/compare-node.ts';
import { findPod } from '../../../inspection/node/find-pod.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import type { CheckArgs } from './arguments.ts';
import { buildVerdicts, renderVerdicts, verdictsDocument } from './build-verdicts.ts';
import { observeNode } from './observe-node.ts';

/** Runs `check`: prints for the node, its ENIs and its Pods whether they are as planned. @throws UserError */
export async function run(
  { pod, output, quiet }: CheckArgs,
  { stdout, ...context }: CommandContext,
): Promise<ExitCode> {
  const snapshot = await observeNode(context);
  const { facts } = snapshot;
  const key = pod === undefined ? undefined : findPod(joinPods(facts), facts.agent, pod).pod.key;
  const verdicts = buildVerdicts(snapshot, compareNode(snapshot), key);
  const isOk = verdicts.every((verdict) => verdict.isOk);
  if (quiet) return isOk ? EXIT.ok : EXIT.wrong;
  if (output === 'json' || output === 'yaml') {
    await printDocument(verdictsDocument(verdicts, isOk, snapshot.unread), output, stdout);
  } else {
    const width = output === 'wide' ? Number.POSITIVE_INFINITY : stdout.columns();
    stdout.write(renderVerdicts(verdicts, { width, isColored: stdout.isColored }));
  }
  return isOk ? EXIT.ok : EXIT.wrong;
}
