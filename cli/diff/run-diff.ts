import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { printDocument } from '../output/print-document.ts';
import type { DiffArgs } from './command.ts';
import { isDifferent, type NodeDifferences } from './difference.ts';
import { diffNode, type NodeSight } from './find-differences.ts';
import { lookAtNode } from './look-at-node.ts';
import { differencesDocument, renderDifferences, renderScript } from './render-differences.ts';

/** Compares the node with what its agent recorded and prints what differs. @throws CliError */
export async function run(args: DiffArgs, context: CommandContext): Promise<ExitCode> {
  const sight = await lookAtNode(context);
  const found = diffNode(sight);
  const isEqual = !found.differences.some(isDifferent);
  const { output } = args;
  const { stdout } = context;
  if (output === 'json' || output === 'yaml') {
    await printDocument(differencesDocument(found, isEqual), output, stdout);
  } else if (output === 'ip') {
    stdout.write(renderScript(found));
  } else {
    const width = output === 'wide' ? Number.POSITIVE_INFINITY : stdout.columns();
    stdout.write(renderDifferences(found, equalText(sight, found), { width, isColored: stdout.isColored }));
  }
  return isEqual ? EXIT.ok : EXIT.wrong;
}

function equalText({ desired }: NodeSight, { unjudged }: NodeDifferences): string {
  const rest = unjudged.length === 0 ? '' : ', as far as it could be judged';
  return `${count(desired.networks.size, 'Pod')} and ${count(desired.enis.length, 'ENI')} are as the agent planned them${rest}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
