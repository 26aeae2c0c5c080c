import { buildOwnerIndex, type OwnerIndex } from '../../../inspection/node/build-owner-index.ts';
import { findPod } from '../../../inspection/node/find-pod.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import type { NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import { renderWarning } from '../../output/render-error.ts';
import type { ListArgs } from './arguments.ts';
import type { IpNames } from './ip-names.ts';
import { openIpNames } from './open-ip-names.ts';
import { renderDumpJson, type Topic } from './render-dump-json.ts';
import { renderDumpTable } from './render-dump-table.ts';
import { renderIpScript } from './render-ip-script.ts';
import { type NetnsDump, selectDump, withoutKernelNeighs } from './select-dump.ts';

/** Returns the body of the command that lists one topic. @throws UserError when it runs */
export function listBody(topic: Topic): { run(args: ListArgs, context: CommandContext): Promise<ExitCode> } {
  return { run: (args, context) => printList(topic, args, context) };
}

/** Prints one list in the requested format. @throws UserError */
async function printList(topic: Topic, args: ListArgs, context: CommandContext): Promise<ExitCode> {
  const facts = await readFacts(context, args.pod);
  const owners = buildOwnerIndex(facts);
  const family = args.family === undefined ? undefined : args.family === '4' ? 4 : 6;
  const { namespaces, problems } = selectDump(facts, owners, { ...args, family });
  const warn = (text: string): void => context.stderr.write(renderWarning(text, context.stderr.isColored));
  for (const { what, why, next } of problems) warn(`${what}: ${why}; ${next}`);
  switch (args.output) {
    case 'ip':
      printScript(topic, args, namespaces, context);
      break;
    case 'json':
    case 'yaml': {
      const view = { isDetailed: args.details, isOneTable: args.table !== undefined };
      const objects = namespaces.flatMap((part) => {
        const shown = args.all ? part.facts : withoutKernelNeighs(part.facts);
        const marked = args.owners ? { ...view, owners } : view;
        return renderDumpJson(topic, { ...part, facts: shown }, namesIn(context, part.unfiltered), marked);
      });
      await printDocument(objects, args.output, context.stdout);
      break;
    }
    default:
      warnOfUnknownNames(facts, context);
      context.stdout.write(tablesOf(topic, args, namespaces, { facts, owners, context }));
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

/**
 * Warns that the names of Pods and ENIs are missing, with the reason: users who know the names expect them in the list.
 */
function warnOfUnknownNames({ agent }: NodeFacts, { stderr }: CommandContext): void {
  if (agent.kind === 'known') return;
  stderr.write(renderWarning(`from the kernel alone, without names of Pods and ENIs: ${agent.why}`, stderr.isColored));
}

/**
 * Prints a script for one namespace: the Pod's when a Pod is named, else the node's. Prints nothing when the Pod's is
 * unknown.
 */
function printScript(topic: Topic, args: ListArgs, namespaces: readonly NetnsDump[], context: CommandContext): void {
  const part = namespaces.at(-1);
  if (part === undefined || (args.pod !== undefined && part.pod === undefined)) return;
  const options = {
    topics: [topic],
    hasStandIns: args['stand-ins'],
    isUnfiltered: [args.table, args.eni, args.family].every((filter) => filter === undefined),
  };
  context.stdout.write(
    renderIpScript({ ...part.facts, unfiltered: part.unfiltered }, namesIn(context, part.unfiltered), options),
  );
}

type Shown = { readonly facts: NodeFacts; readonly owners: OwnerIndex; readonly context: CommandContext };

function tablesOf(
  topic: Topic,
  args: ListArgs,
  namespaces: readonly NetnsDump[],
  { facts, owners, context }: Shown,
): string {
  const { isColored } = context.stdout;
  const options = {
    isAll: args.all,
    isColored,
    tableNames: facts.host.tableNames,
    ...(args.output === 'wide' ? {} : { width: context.stdout.columns() }),
  };
  return namespaces
    .map((part) => renderDumpTable(topic, part, namesIn(context, part.unfiltered), owners, options))
    .join('\n');
}

/** Reads the node, and the namespace of no Pod but the named one; traffic control only where it is asked for. */
export async function readFacts(
  context: CommandContext,
  pod: string | undefined,
  { traffic = false }: { readonly traffic?: boolean } = {},
): Promise<NodeFacts> {
  const reading = { nft: false, sysctls: false, traffic } as const;
  const facts = await readNodeFacts(context, { ...reading, traffic: traffic && pod === undefined, insides: 'none' });
  if (pod === undefined) return facts;
  const { key } = findPod(joinPods(facts), facts.agent, pod).pod;
  return readNodeFacts(context, { ...reading, insides: (each) => each === key, showsTaken: true });
}

/** Returns the names as iproute2 on the host prints them, for one namespace. */
export function namesIn({ global }: Pick<CommandContext, 'global'>, { links }: Pick<NetnsFacts, 'links'>): IpNames {
  return openIpNames(global.hostRoot, new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname])));
}
