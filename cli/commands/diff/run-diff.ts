import { compareNode, namesOf, type RecordedSnapshot } from '../../../inspection/judge/compare-node.ts';
import { isDifferent, type NodeDifferences } from '../../../inspection/judge/difference.ts';
import type { AgentFacts } from '../../../inspection/node/node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { plural } from '../../output/plural.ts';
import { printDocument } from '../../output/print-document.ts';
import type { DiffArgs } from './arguments.ts';
import { observeNode } from './observe-node.ts';
import { compareRemoteState } from './remote/compare-remote-state.ts';
import { readCloud, readNec } from './remote/read-remote-state.ts';
import type { RemoteState } from './remote/remote-state.ts';
import { differencesDocument, renderDifferences, renderScript } from './render-differences.ts';

/** Runs `diff`: compares the node with its agent's records and prints the differences. @throws UserError */
export async function run(args: DiffArgs, context: CommandContext): Promise<ExitCode> {
  const snapshot = await observeNode(context);
  const found = compareAll(snapshot, await readRemoteStates(args, context, snapshot));
  const isEqual = !found.differences.some(isDifferent);
  const { output } = args;
  const { stdout } = context;
  if (output === 'json' || output === 'yaml') {
    await printDocument(differencesDocument(found, isEqual), output, stdout);
  } else if (output === 'ip') {
    stdout.write(renderScript(found));
  } else {
    const width = output === 'wide' ? Number.POSITIVE_INFINITY : stdout.columns();
    stdout.write(renderDifferences(found, equalText(snapshot, found), { width, isColored: stdout.isColored }));
  }
  return isEqual ? EXIT.ok : EXIT.wrong;
}

/** Reads the requested remote states of this node: from the cluster, from the cloud. @throws UserError */
async function readRemoteStates(
  args: DiffArgs,
  context: CommandContext,
  snapshot: RecordedSnapshot,
): Promise<readonly RemoteState[]> {
  const { agent, desired } = snapshot;
  const nec = args.nec ? [await readNec(context, nodeNameOf(agent))] : [];
  const eniIds = desired.enis.map(({ eniId }) => eniId);
  const { region, endpoint } = args;
  return args.cloud ? [...nec, await readCloud(context, { region, endpoint }, eniIds)] : nec;
}

/** Returns the recorded name of this node. @throws UserError NO_JOURNAL */
function nodeNameOf({ node, journal }: AgentFacts): string {
  const name = node.kind === 'known' ? node.value.nodeName : journal.supply?.nodeName;
  if (name !== undefined && name !== '') return name;
  const next = 'start the agent: it records the name with its first plan';
  throw new UserError('NO_JOURNAL', 'the name of this node is not recorded', next);
}

function compareAll(snapshot: RecordedSnapshot, remotes: readonly RemoteState[]): NodeDifferences {
  const found = compareNode(snapshot);
  const names = namesOf(snapshot);
  const more = remotes.flatMap((remote) => compareRemoteState(remote, snapshot.agent, snapshot.desired, names));
  return { ...found, differences: [...found.differences, ...more] };
}

function equalText({ desired }: RecordedSnapshot, { unjudged }: NodeDifferences): string {
  const rest = unjudged.length === 0 ? '' : ', as far as it could be checked';
  return `${plural(desired.networks.size, 'Pod')} and ${plural(desired.enis.length, 'ENI')} are as the agent planned them${rest}`;
}
