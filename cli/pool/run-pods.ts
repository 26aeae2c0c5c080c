import { DIRECT_LINK_GROUP } from '../../dataplane/numbers.ts';
import type { CommandContext } from '../command.ts';
import { EXIT, type ExitCode } from '../exit-code.ts';
import { podAddresses } from '../node/find-pod.ts';
import { ifKnown } from '../node/known.ts';
import type { NodeFacts } from '../node/node-facts.ts';
import { readNodeFacts } from '../node/read-node-facts.ts';
import { renderWarning } from '../output/render-error.ts';
import type { PodsArgs } from './arguments.ts';
import { buildPodRows, matchesPod, networkNameOf, type PodRow } from './build-pod-rows.ts';
import { printView } from './print-view.ts';
import { renderPods } from './render-pods.ts';

/** Shows the Pods of the node. @throws CliError FORBIDDEN, KERNEL */
export async function run({ output, pod }: PodsArgs, context: CommandContext): Promise<ExitCode> {
  const facts = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  if (facts.agent.kind === 'unknown') {
    const notice = `from the kernel alone, without names: ${facts.agent.why}`;
    context.stderr.write(renderWarning(notice, context.stderr.isColored));
  }
  const journal = ifKnown(facts.agent)?.journal;
  const rows = journal === undefined ? kernelRows(facts) : buildPodRows(journal.leases, context.clock.bootMs());
  const selected = pod === undefined ? rows : rows.filter((row) => matchesPod(row, pod));
  await printView(output, context, selected, (options) => renderPods(selected, options));
  return EXIT.ok;
}

/** Tells by the link alone which network a Pod has. */
function networkOf({ host }: NodeFacts, ifindex: number | undefined): string {
  const veth = host.links.find((link) => link.ifindex === ifindex);
  const isOnBridge = host.links.some((link) => link.kind === 'bridge' && link.ifindex === veth?.master);
  if (isOnBridge) return networkNameOf('bridge');
  if (veth?.group === DIRECT_LINK_GROUP) return networkNameOf('direct-eni');
  return veth?.group === 0 ? '' : networkNameOf('route-eni');
}

/** Builds rows without a journal, from the aliases of host veths and the routes to them. */
function kernelRows(facts: NodeFacts): readonly PodRow[] {
  return facts.pods.map((pod): PodRow => {
    const slash = pod.key.indexOf('/');
    return {
      namespace: '',
      pod: '',
      containerId: pod.key.slice(0, slash),
      ifName: pod.key.slice(slash + 1),
      ips: podAddresses(facts, pod),
      eniId: '',
      veth: facts.host.links.find(({ ifindex }) => ifindex === pod.hostIfindex)?.ifname ?? '',
      netns: '',
      plugin: 'route-eni',
      network: networkOf(facts, pod.hostIfindex),
      state: 'unknown',
    };
  });
}
