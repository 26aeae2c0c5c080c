import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { findPod } from '../node/find-pod.ts';
import { printDocument } from '../output/print-document.ts';
import type { CheckArgs } from './arguments.ts';
import { diffNode } from './find-differences.ts';
import { findVerdicts } from './find-verdicts.ts';
import { lookAtNode } from './look-at-node.ts';
import { renderVerdicts, verdictsDocument } from './render-verdicts.ts';

/** Runs `check`: prints for the node, its ENIs and its Pods whether they are as planned. @throws CliError */
export async function run(
  { pod, output, quiet }: CheckArgs,
  { stdout, ...context }: CommandContext,
): Promise<ExitCode> {
  const sight = await lookAtNode(context);
  const key = pod === undefined ? undefined : findPod(sight.facts, pod).key;
  const verdicts = findVerdicts(sight, diffNode(sight), key);
  const isOk = verdicts.every((verdict) => verdict.isOk);
  if (quiet) return isOk ? EXIT.ok : EXIT.wrong;
  if (output === 'json' || output === 'yaml') {
    await printDocument(verdictsDocument(verdicts, isOk, sight.unseen), output, stdout);
  } else {
    const width = output === 'wide' ? Number.POSITIVE_INFINITY : stdout.columns();
    stdout.write(renderVerdicts(verdicts, { width, isColored: stdout.isColored }));
  }
  return isOk ? EXIT.ok : EXIT.wrong;
}
