import { buildOwnerIndex } from '../../../inspection/node/build-owner-index.ts';
import { findPod } from '../../../inspection/node/find-pod.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import type { NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readNftText } from '../../../inspection/node/read-nft-facts.ts';
import { netnsPathOf } from '../../../inspection/node/with-node-netns.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { printDocument } from '../../output/print-document.ts';
import { renderWarning } from '../../output/render-error.ts';
import type { DumpArgs } from './arguments.ts';
import { namesIn, readFacts } from './print-list.ts';
import { renderDumpJson, type Topic } from './render-dump-json.ts';
import { renderFiltersJson } from './render-filters.ts';
import { renderIpScript } from './render-ip-script.ts';

const TOPICS: readonly Topic[] = ['links', 'addrs', 'routes', 'neigh', 'rules'];

/** Prints everything of one namespace. @throws UserError */
export async function run(args: DumpArgs, context: CommandContext): Promise<ExitCode> {
  const facts = await readFacts(context, args.pod, { traffic: true });
  const { shown, pod } = namespaceOf(facts, args.pod);
  const names = namesIn(context, shown);
  const nft = pod === undefined ? await nftOf(args, context) : undefined;
  // All tables have this one among them.
  const flowtable = pod === undefined && args.nft === 'ours' ? await readNft(context, 'flowtable') : undefined;
  if (args.output === 'ip') {
    const options = {
      topics: TOPICS,
      hasStandIns: args['stand-ins'],
      isUnfiltered: true,
      filters: shown.traffic.filters,
      ...(nft === undefined ? {} : { nft }),
      ...(flowtable === undefined ? {} : { flowtable }),
    };
    context.stdout.write(renderIpScript({ ...shown, unfiltered: shown }, names, options));
    return EXIT.ok;
  }
  const view = {
    isDetailed: args.details,
    isOneTable: false,
    ...(pod === undefined ? { owners: buildOwnerIndex(facts) } : {}),
  };
  const entries = TOPICS.map(
    (topic) => [topic, renderDumpJson(topic, { pod, facts: shown, unfiltered: shown }, names, view)] as const,
  );
  const filters = renderFiltersJson(shown, names, view);
  warnOfUnknownFilters(shown, context);
  const texts = { nft: nft ?? null, flowtable: flowtable ?? null };
  await printDocument({ ...Object.fromEntries(entries), filters, ...texts }, args.output, context.stdout);
  return EXIT.ok;
}

function namespaceOf(
  facts: NodeFacts,
  podName: string | undefined,
): { readonly shown: NetnsFacts; readonly pod: string | undefined } {
  if (podName === undefined) return { shown: facts.host, pod: undefined };
  const { pod, title } = findPod(joinPods(facts), facts.agent, podName);
  const { inside } = pod;
  if (inside.kind === 'known') return { shown: inside.value, pod: title };
  throw new UserError('FORBIDDEN', `inside Pod ${title}: ${inside.why}`, inside.next);
}

function warnOfUnknownFilters({ traffic: { filters } }: NetnsFacts, { stderr }: CommandContext): void {
  if (filters.kind === 'known') return;
  stderr.write(renderWarning(`without traffic filters: ${filters.why}; ${filters.next}`, stderr.isColored));
}

async function nftOf({ nft }: DumpArgs, context: CommandContext): Promise<string | undefined> {
  return nft === 'none' ? undefined : await readNft(context, nft);
}

async function readNft(
  { global }: CommandContext,
  which: Parameters<typeof readNftText>[1],
): Promise<string | undefined> {
  const found = await readNftText(global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) }, which);
  if (found.kind === 'known') return found.value;
  throw new UserError('FORBIDDEN', found.why, `${found.next}; --nft none leaves it out`);
}
