import type { PanelRow } from './panel.ts';

/** Panels of what agents do; the reader chooses `$node`. Processes of both are last. */
export const NODE_ROWS: readonly PanelRow[] = [
  {
    title: 'Pods: what agents serve',
    panels: [
      {
        title: 'Calls by verb and code',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Code 0 is success; others: docs/reference/errors.md.',
        lines: [
          [
            'sum by (verb, code) (rate(tke_eni_request_seconds_count{node=~"$node"}[$__rate_interval]))',
            '{{verb}} {{code}}',
          ],
        ],
      },
      {
        title: 'ADD by phase (nine of ten)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'allocate: waits for addresses; queue: many at once; record: the journal; netlink, verify: the kernel.',
        lines: [
          [
            'histogram_quantile(0.9, sum by (le, phase) (rate(tke_eni_add_phase_seconds_bucket{node=~"$node"}[$__rate_interval])))',
            '{{phase}}',
          ],
        ],
      },
      {
        title: 'Pool by state',
        kind: 'lines',
        width: 8,
        help: 'No free ones for long: Pods wait, or reuse addresses that still cool.',
        lines: [
          ['sum by (state) (tke_eni_pool_addresses{node=~"$node"})', '{{state}}'],
          ['sum(tke_eni_offered_addresses{node=~"$node"})', 'offered back'],
          ['sum by (state) (tke_eni_pod_cidr_addresses{node=~"$node"})', 'podCIDR {{state}}'],
        ],
      },
      {
        title: 'Nodes without a free address',
        kind: 'lines',
        width: 8,
        help: 'Nodes whose pool has addresses, and none free.',
        lines: [
          [
            'count(sum by (node) (tke_eni_pool_addresses) unless sum by (node) (tke_eni_pool_addresses{state="free"})) or vector(0)',
            'nodes',
          ],
          [
            'sum(rate(tke_eni_forced_reuse_total{node=~"$node"}[$__rate_interval]))',
            'cooldowns cut short, each second',
          ],
        ],
      },
      {
        title: 'ENIs of nodes',
        kind: 'lines',
        width: 8,
        help: 'missing: in the supply, and not set up.',
        lines: [['sum by (state) (tke_eni_enis{node=~"$node"})', '{{state}}']],
      },
      {
        title: 'Attachments',
        kind: 'lines',
        width: 8,
        help: 'Leases that agents keep, and spooled DELs that are not done.',
        lines: [
          ['sum(tke_eni_leases{node=~"$node"})', 'leases'],
          ['sum(tke_eni_spool_pending{node=~"$node"})', 'spooled DELs'],
          ['sum(rate(tke_eni_collected_total{node=~"$node"}[$__rate_interval]))', 'collected, each second'],
        ],
      },
      {
        title: 'Devices offered to kubelets',
        kind: 'lines',
        width: 12,
        help: 'The resource tke.cloud.tencent.com/eni-ip: how many Pods nodes take.',
        lines: [
          ['sum by (resource, health) (tke_eni_device_plugin_devices{node=~"$node"})', '{{resource}} {{health}}'],
        ],
      },
      {
        title: 'Registrations with kubelets',
        kind: 'lines',
        unit: 'ops',
        width: 12,
        help: 'Each restart of a kubelet is one that is registered; others should stop soon.',
        lines: [
          [
            'sum by (outcome) (rate(tke_eni_device_plugin_registrations_total{node=~"$node"}[$__rate_interval]))',
            '{{outcome}}',
          ],
        ],
      },
    ],
  },
  {
    title: 'Repair: the kernel as it should be',
    panels: [
      {
        title: 'Differences found',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Somebody else changes rules, routes or links.',
        lines: [['sum by (kind) (rate(tke_eni_drift_total{node=~"$node"}[$__rate_interval]))', '{{kind}}']],
      },
      {
        title: 'Fights and conflicts',
        kind: 'lines',
        width: 8,
        help: 'Good: 0. A fight: repair is undone again and again. A conflict: our place is taken.',
        lines: [
          ['sum by (node) (tke_eni_fights{node=~"$node"}) > 0', 'fight {{node}}'],
          ['sum by (node) (tke_eni_conflicts{node=~"$node"}) > 0', 'conflict {{node}}'],
        ],
      },
      {
        title: 'Passes by cause',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'Looks at the whole node; mostly timer.',
        lines: [
          ['sum by (trigger) (rate(tke_eni_repair_passes_total{node=~"$node"}[$__rate_interval]))', '{{trigger}}'],
        ],
      },
    ],
  },
  {
    title: 'API server and processes',
    panels: [
      {
        title: 'Silence of the API server (worst)',
        kind: 'lines',
        unit: 's',
        width: 8,
        help: 'Above 300 s: look at the API server. Nodes go on from their journals.',
        lines: [
          ['max(tke_eni_api_server_silence_seconds{node=~"$node"})', 'agents'],
          ['max by (resource) (tke_eni_ipamd_informer_age_seconds)', 'ipamd {{resource}}'],
        ],
      },
      {
        title: 'Writes of NodeENIConfigs',
        kind: 'lines',
        unit: 'ops',
        width: 8,
        help: 'conflicts are everyday life, failures are not.',
        lines: [
          [
            'sum by (outcome) (rate(tke_eni_publications_total{node=~"$node"}[$__rate_interval]))',
            'agents {{outcome}}',
          ],
          ['sum by (result) (rate(tke_eni_ipamd_node_writes_total[$__rate_interval]))', 'ipamd {{result}}'],
        ],
      },
      {
        title: 'ipamd: keys that wait, and workers',
        kind: 'lines',
        width: 8,
        help: 'A queue that only grows: the cloud or the API server is slow.',
        lines: [
          ['max by (queue) (tke_eni_ipamd_queue_length)', 'waiting {{queue}}'],
          ['max by (queue) (tke_eni_ipamd_queue_running)', 'running {{queue}}'],
        ],
      },
      {
        title: 'Memory',
        kind: 'lines',
        unit: 'bytes',
        width: 12,
        help: 'An agent has some 105 MiB, ipamd up to 150 MiB with 1,000 nodes.',
        lines: [
          ['max(process_resident_memory_bytes{job="tke-eni-agent",node=~"$node"})', 'largest agent'],
          ['max by (node) (tke_eni_ipamd_resident_memory_bytes)', 'ipamd on {{node}}'],
        ],
      },
      {
        title: 'CPU',
        kind: 'lines',
        width: 12,
        help: 'Cores.',
        lines: [
          [
            'max(rate(process_cpu_seconds_total{job="tke-eni-agent",node=~"$node"}[$__rate_interval]))',
            'busiest agent',
          ],
          ['max by (node) (rate(tke_eni_ipamd_cpu_seconds[$__rate_interval]))', 'ipamd on {{node}}'],
        ],
      },
    ],
  },
];
