import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { ownersOf } from '../node/find-owner.ts';
import { findPod } from '../node/find-pod.ts';
import type { NetnsFacts, NodeFacts } from '../node/node-facts.ts';
import { readNodeFacts } from '../node/read-node-facts.ts';
import { printDocument } from '../output/print-document.ts';
import type { ListArgs } from './command.ts';
import { findDump, withoutKernelNeighs } from './find-dump.ts';
import type { IpNames } from './ip-names.ts';
import { openIpNames } from './open-ip-names.ts';
import { renderDumpJson, type Topic } from './render-dump-json.ts';
import { renderDumpTable } from './render-dump-table.ts';
import { renderIpScript } from './render-ip-script.ts';

/** Prints one list in the form that was asked for. @throws CliError */
export async function printList(topic: Topic, args: ListArgs, context: CommandContext): Promise<ExitCode> {
  const { output, pod } = args;
  const facts = await readFacts(context, pod);
  const owners = ownersOf(facts);
  const family = args.family === undefined ? undefined : args.family === '4' ? 4 : 6;
  const { parts, problems } = findDump(facts, owners, { ...args, family });
  for (const { what, why, next } of problems) context.stderr.write(`tke-eni: ${what}: ${why}; ${next}\n`);
  const namesOf = (shown: NetnsFacts) => namesIn(context, shown);
  const whole = new Map(parts.map((part) => [part, part.pod === undefined ? facts.host : part.facts]));
  if (output === 'ip') {
    // A script makes one namespace: of a Pod that was named, its inside.
    const part = parts.at(-1);
    if (part !== undefined) {
      const names = namesOf(whole.get(part) ?? part.facts);
      const shown = { ...part.facts, allLinks: whole.get(part)?.links ?? part.facts.links };
      context.stdout.write(renderIpScript(shown, names, { topics: [topic], hasStandIns: args['stand-ins'] }));
    }
  } else if (output === 'json' || output === 'yaml') {
    const view = {
      isDetailed: args.details,
      isOneTable: args.table !== undefined,
      ...(args.owners ? { owners } : {}),
    };
    const objects = parts.flatMap((part) => {
      const shown = args.all ? part.facts : withoutKernelNeighs(part.facts);
      return renderDumpJson(topic, { ...part, facts: shown }, namesOf(whole.get(part) ?? part.facts), view);
    });
    await printDocument(objects, output, context.stdout);
  } else {
    const width = output === 'wide' ? undefined : context.stdout.columns();
    const options = {
      isAll: args.all,
      isColored: context.stdout.isColored,
      tableNames: facts.host.tableNames,
      ...(width === undefined ? {} : { width }),
    };
    const texts = parts.map((part) =>
      renderDumpTable(topic, part, namesOf(whole.get(part) ?? part.facts), owners, options),
    );
    context.stdout.write(texts.join('\n'));
  }
  return problems.length === 0 ? EXIT.ok : EXIT.failed;
}

/** Reads the node, and of Pods' insides only the one that was named. */
export async function readFacts(context: CommandContext, pod: string | undefined): Promise<NodeFacts> {
  const reading = { nft: false, sysctls: false } as const;
  const facts = await readNodeFacts(context, { ...reading, insides: 'none' });
  if (pod === undefined) return facts;
  const { key } = findPod(facts, pod);
  return readNodeFacts(context, { ...reading, insides: (each) => each === key });
}

/** Names as iproute2 on the host prints them, for one namespace. */
export function namesIn({ global }: Pick<CommandContext, 'global'>, { links }: Pick<NetnsFacts, 'links'>): IpNames {
  return openIpNames(global.hostRoot, new Map(links.map(({ ifindex, ifname }) => [ifindex, ifname])));
}
