import { basename } from 'node:path';
import { ON_LINK_ENI_ID } from '../../../agent/journal/supply.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Finding } from '../../../inspection/catalogue/finding.ts';
import { findCiliumChain, pluginTypesOf } from '../../../inspection/node/find-cilium-chain.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../inspection/node/node-facts.ts';
import { joinLimited } from '../../../runtime/limit-text.ts';
import { type Check, done, skipped, whenKnown } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';
import type { ConfFile } from './read-conf-files.ts';

/** Checks that cilium-cni protects all Pods of the node, and that Cilium's marks and settings do not clash with ours. */
export const CILIUM_CHAIN_CHECK: Check = {
  id: 'cilium-chain',
  scope: 'where a configuration names cilium-cni: order, Pods that it cannot protect, marks, settings',
  finds: ['cilium-chain'],
  evaluate: (facts) =>
    whenKnown(facts.cni, ({ confs }) => {
      const ofCilium = confs.filter(({ text }) => pluginTypesOf(text).includes('cilium-cni'));
      const [first] = ofCilium;
      if (first === undefined) return skipped('no CNI configuration names cilium-cni');
      const chain = findCiliumChain(confs);
      return done(
        [
          ...bypasses(confs),
          ...(chain === undefined ? [] : unprotected(facts.node, chain)),
          ...clashingMarks(facts.node, first),
          ...sysctlFix(facts),
        ],
        ofCilium.map((conf) => `${conf.path} names cilium-cni${conf === chain ? ', after our plugin' : ''}`),
      );
    }),
};

/** Finds a configuration of Cilium alone that runtimes take: it is the first that they can read. */
function bypasses(confs: readonly ConfFile[]): readonly Finding[] {
  const first = confs.find(({ text }) => pluginTypesOf(text).length > 0);
  const isAlone = first !== undefined && !/"type"\s*:\s*"tke-/.test(first.text);
  if (!isAlone || !pluginTypesOf(first.text).includes('cilium-cni')) return [];
  return [
    finding('cilium-chain', {
      what: `${first.path} calls cilium-cni without a plugin of ours, and is the first: new Pods get no address of an ENI`,
      severity: 'error',
      fix: [
        'helm upgrade cilium cilium/cilium -n kube-system --reuse-values --set cni.customConf=true --set cni.exclusive=false --set cni.chainingMode=generic-veth',
        `mv ${first.path} ${first.path}.unused`,
        'start the agent with --chained-plugins=cilium-cni',
      ],
      subjects: [],
    }),
  ];
}

const SHOWN_PODS = 5;

function unprotected(node: NodeFacts, chain: ConfFile): readonly Finding[] {
  const leases = ifKnown(node.agent)?.journal.leases ?? [];
  const pods = leases.filter(
    ({ plugin, eniId }) => plugin === 'direct-eni' || (plugin === 'bridge' && eniId !== ON_LINK_ENI_ID),
  );
  if (pods.length === 0) return [];
  const names = pods.map(
    ({ podNamespace, podName, plugin }) =>
      `${podNamespace}/${podName} (${plugin === 'bridge' ? 'GlobalRoute' : 'exclusive ENI'})`,
  );
  const shown = joinLimited([...names.slice(0, SHOWN_PODS), ...(names.length > SHOWN_PODS ? ['...'] : [])], ', ');
  return [
    finding('cilium-chain', {
      what: `${chain.path} chains cilium-cni, whose policies do not hold for ${pods.length} Pods: ${shown}`,
      fix: pods
        .slice(0, SHOWN_PODS)
        .map(({ podNamespace, podName }) => `kubectl -n ${podNamespace} delete pod ${podName}`),
      subjects: [],
    }),
  ];
}

function clashingMarks({ agent }: NodeFacts, { path }: ConfFile): readonly Finding[] {
  const facts = ifKnown(agent);
  const planned = facts === undefined ? undefined : ifKnown(facts.node)?.node;
  if ((planned?.ruleMode ?? facts?.journal.ruleMode) !== 'compact') return [];
  return [
    finding('cilium-chain', {
      what: `${path} names cilium-cni, and rules are laid out as compact: marks of both use the upper 16 bits`,
      fix: [
        'tke-eni status',
        'start the agent with --rule-mode=auto, or per-pod: the node migrates, and no packet is lost',
      ],
      subjects: [],
    }),
  ];
}

/** Finds the file that Cilium's `sysctlfix` writes: it loads all settings of boot again. */
function sysctlFix({ sysctlFiles }: DoctorFacts): readonly Finding[] {
  const file = ifKnown(sysctlFiles)?.find(({ path }) => /override_cilium/.test(basename(path)));
  if (file === undefined) return [];
  return [
    finding('cilium-chain', {
      what: `${file.path} is of Cilium’s sysctlfix, which sets all settings of boot again when Cilium starts, rp_filter too`,
      fix: [
        'helm upgrade cilium cilium/cilium -n kube-system --reuse-values --set sysctlfix.enabled=false',
        `rm ${file.path}`,
      ],
      subjects: [],
    }),
  ];
}
