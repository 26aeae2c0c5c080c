import type { PanelRow } from './panel.ts';

/** Panels that say whether it is well, and what waits. */
export const OVERVIEW_ROWS: readonly PanelRow[] = [
  {
    title: 'Is it well?',
    panels: [
      {
        title: 'Nodes that want addresses',
        kind: 'number',
        width: 4,
        help: 'NodeENIConfigs that are not Ready, calls under way and leaving nodes left out. Good: 0.',
        lines: [
          [
            'sum(max by (reason) (tke_eni_ipamd_nodes{ready="False",reason!~"CallUnderWay|Draining"})) or vector(0)',
            '',
          ],
        ],
      },
      {
        title: 'ADDs failed (5 min)',
        kind: 'number',
        width: 4,
        help: 'Pods that got no network at their first try, on all nodes.',
        lines: [['sum(increase(tke_eni_request_seconds_count{verb="add",code!="0"}[5m])) or vector(0)', '']],
      },
      {
        title: 'Agents up',
        kind: 'number',
        width: 4,
        help: 'Agents that are scraped. Compare with the number of nodes.',
        lines: [['sum(up{job="tke-eni-agent"})', '']],
      },
      {
        title: 'Leaders',
        kind: 'number',
        width: 4,
        help: 'Replicas of ipamd that lead. Good: 1.',
        lines: [['sum(tke_eni_ipamd_leader)', '']],
      },
      {
        title: 'Fewest free addresses of a subnet',
        kind: 'number',
        width: 4,
        help: 'As the cloud described it at last.',
        lines: [['min(tke_eni_ipamd_subnet_free_addresses)', '']],
      },
      {
        title: 'Oldest cloud call',
        kind: 'number',
        unit: 's',
        width: 4,
        help: 'Age of the oldest call on record. Above ten minutes something hangs.',
        lines: [['max(tke_eni_ipamd_intent_oldest_seconds) or vector(0)', '']],
      },
      {
        title: 'What is wrong now, as ipamd sees it',
        kind: 'table',
        width: 12,
        help: 'Kinds and cures: docs/ipamd.md, "Conditions, reasons, events".',
        lines: [['max by (kind, name) (tke_eni_ipamd_problem) > 0', '']],
      },
      {
        title: 'Alerts that fire',
        kind: 'table',
        width: 12,
        help: 'Each has a page in docs/runbooks/.',
        lines: [['max by (alertname, severity, node, reason) (ALERTS{alertname=~"TkeEni.*",alertstate="firing"})', '']],
      },
    ],
  },
];
