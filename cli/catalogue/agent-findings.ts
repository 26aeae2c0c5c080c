import type { CatalogueEntry } from './catalogue-entry.ts';

/** The agent, what it keeps and what the container runtime reads. */
export const AGENT_FINDINGS = {
  'agent-dead': {
    title: 'No agent answers on its socket',
    why: 'No Pod can start on this node and nothing repairs what others change; Pods that run keep their network.',
    cure: '`kubectl -n kube-system get pods -l k8s-app=tke-eni-agent`; runbook TkeEniAgentDown.',
    severity: 'error',
    isOurs: false,
  },
  'agent-not-ready': {
    title: 'The agent runs and cannot serve an ADD',
    why: 'Pods stay in ContainerCreating.',
    cure: 'See the reason; runbook TkeEniAgentNotReady.',
    severity: 'error',
    isOurs: false,
  },
  'journal-missing': {
    title: 'The agent has no journal on this node',
    why: 'Without it nobody knows which addresses are in use but the kernel; the agent adopts what it finds before it serves.',
    cure: 'Start the agent. If it runs: /run/tke-eni is another folder for it than for you (a mount), or was emptied; restart it.',
    severity: 'warning',
    isOurs: false,
  },
  'journal-unreadable': {
    title: "The agent's journal cannot be read",
    why: 'The agent adopts Pods from the kernel when it starts; cooldowns and intents are lost.',
    cure: 'Restart the agent: it sets the damaged file aside. Keep the file for a report.',
    severity: 'error',
    isOurs: false,
  },
  'journal-of-another-boot': {
    title: 'The journal is of an earlier boot',
    why: 'The state folder survives a reboot though no sandbox does: its leases are dead. The agent drops them at its start, at the price of a slow one.',
    cure: 'Put the state folder on a tmpfs (/run).',
    severity: 'warning',
    isOurs: false,
  },
  'state-dir-not-tmpfs': {
    title: "The agent's state folder is not on a tmpfs",
    why: 'It survives a reboot that no sandbox survives, and each ADD waits for the disk.',
    cure: "Mount /run as tmpfs (every distribution does), and the agent's hostPath under it.",
    severity: 'warning',
    isOurs: false,
  },
  'state-dir-full': {
    title: "The file system of the agent's state folder is nearly full",
    why: 'When it is full no lease can be written: every ADD fails.',
    cure: '`du -xah /run | sort -h | tail` names who fills it.',
    severity: 'error',
    isOurs: false,
  },
  'spool-not-drained': {
    title: 'DELs that came while no agent answered are not done yet',
    why: 'Their addresses stay held.',
    cure: 'The agent drains the folder when it starts; runbook TkeEniSpoolNotDrained.',
    severity: 'warning',
    isOurs: false,
  },
  'plugin-missing': {
    title: 'An executable that the CNI configuration names is not in the plugin folder',
    why: 'Every ADD of this node fails.',
    cure: 'Restart the agent: it installs ours and the reference plugins that miss.',
    severity: 'error',
    isOurs: false,
  },
  'cni-conf-missing': {
    title: 'No CNI configuration of ours is in the configuration folder',
    why: 'The runtime says NetworkPluginNotReady, the node is NotReady and no Pod starts.',
    cure: 'Start the agent: it writes it once it is ready.',
    severity: 'error',
    isOurs: false,
  },
  'cni-conf-not-first': {
    title: 'Another CNI configuration comes before ours',
    why: 'Runtimes take the first file in alphabetical order: new Pods get the network of another CNI.',
    cure: 'Remove or rename the other file; after a migration it is a leftover.',
    severity: 'error',
    isOurs: false,
  },
} as const satisfies Readonly<Record<string, CatalogueEntry>>;
