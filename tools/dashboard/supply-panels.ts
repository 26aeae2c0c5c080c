import type { PanelRow } from './panel.ts';

/** Panels of what ipamd does: nodes, addresses, subnets, the cloud. */
export const SUPPLY_ROWS: readonly PanelRow[] = [
  {
    title: 'Supply: nodes, addresses, subnets',
    panels: [
      {
        title: 'Nodes by reason',
        kind: 'lines',
        width: 8,
        help: 'SupplyMet is good; CallUnderWay comes and goes.',
        lines: [['max by (reason) (tke_eni_ipamd_nodes)', '{{reason}}']],
      },
      {
        title: 'Free addresses by subnet',
        kind: 'lines',
        width: 8,
        help: 'A subnet that nears 0 needs a second one in the ConfigMap.',
        lines: [['max by (subnet, zone) (tke_eni_ipamd_subnet_free_addresses)', '{{subnet}} {{zone}}']],
      },
      {
        title: 'More nodes by zone',
        kind: 'lines',
        width: 8,
        help: 'New nodes that get an ENI with warm addresses. Below 5 the zone needs another subnet.',
        lines: [['max by (zone) (tke_eni_ipamd_zone_nodes_left)', '{{zone}}']],
      },
      {
        title: 'Addresses and ENIs by state',
        kind: 'lines',
        width: 8,
        help: 'Of all nodes. Attaching and Releasing should not stay.',
        lines: [
          ['sum by (state) (max by (subnet, state) (tke_eni_ipamd_addresses))', 'address {{state}}'],
          ['sum by (state) (max by (subnet, state) (tke_eni_ipamd_enis))', 'ENI {{state}}'],
        ],
      },
      {
        title: 'Blocks of podCIDRs, routes of the VPC',
        kind: 'lines',
        width: 8,
        help: 'Few free blocks: add a network to --cluster-cidr. Routes other than right should not stay.',
        lines: [
          ['max by (state) (tke_eni_ipamd_pod_cidr_blocks)', 'block {{state}}'],
          ['max by (state) (tke_eni_ipamd_cluster_routes)', 'route {{state}}'],
        ],
      },
      {
        title: 'Time until a new node is ready',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'From the creation of its NodeENIConfig.',
        lines: [
          [
            'histogram_quantile(0.5, sum by (le) (rate(tke_eni_ipamd_node_warm_seconds_bucket[$__rate_interval])))',
            'half',
          ],
          [
            'histogram_quantile(0.9, sum by (le) (rate(tke_eni_ipamd_node_warm_seconds_bucket[$__rate_interval])))',
            'nine of ten',
          ],
        ],
      },
      {
        title: 'Calls on record by phase',
        kind: 'lines',
        width: 8,
        help: 'Unclear ones are being found out about.',
        lines: [['max by (action, phase) (tke_eni_ipamd_intents)', '{{action}} {{phase}}']],
      },
      {
        title: 'Orphans and drift',
        kind: 'lines',
        width: 8,
        help: 'Good: 0.',
        lines: [
          ['max(tke_eni_ipamd_orphan_enis)', 'orphaned ENIs'],
          ['max(tke_eni_ipamd_drifted_nodes)', 'nodes that differ from the cloud'],
        ],
      },
    ],
  },
  {
    title: 'Cloud',
    panels: [
      {
        title: 'Calls by action',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Attempts, refused ones included.',
        lines: [['sum by (action) (rate(tke_eni_ipamd_cloud_calls_total[$__rate_interval]))', '{{action}}']],
      },
      {
        title: 'Errors by code',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Codes: docs/cloud-calls.md.',
        lines: [
          [
            'sum by (action, code) (rate(tke_eni_ipamd_cloud_calls_total{code!="ok"}[$__rate_interval]))',
            '{{action}} {{code}}',
          ],
        ],
      },
      {
        title: 'Time of an attempt, and wait for its turn (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'A long wait with short attempts: our own pace holds back.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le, action) (rate(tke_eni_ipamd_cloud_call_seconds_bucket[$__rate_interval])))',
            '{{action}}',
          ],
          [
            'histogram_quantile(0.9, sum by (le) (rate(tke_eni_ipamd_cloud_wait_seconds_bucket[$__rate_interval])))',
            'wait',
          ],
        ],
      },
      {
        title: 'Pace that is allowed now',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Sinks when the cloud throttles, grows back within seconds.',
        lines: [['max by (product, action) (tke_eni_ipamd_cloud_rate_allowed)', '{{product}} {{action}}']],
      },
      {
        title: 'Calls that wait, breakers that are open',
        kind: 'lines',
        width: 8,
        help: 'An open breaker: the cloud refused, and no request is sent for a while.',
        lines: [
          ['sum by (action) (tke_eni_ipamd_cloud_calls_waiting)', 'waits: {{action}}'],
          ['max by (kind) (tke_eni_ipamd_breakers_open)', 'open: {{kind}}'],
        ],
      },
      {
        title: 'Changes for nodes by outcome',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'refused and unclear should be rare.',
        lines: [
          [
            'sum by (action, outcome) (rate(tke_eni_ipamd_node_calls_total[$__rate_interval]))',
            '{{action}} {{outcome}}',
          ],
        ],
      },
    ],
  },
];
