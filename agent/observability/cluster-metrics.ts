import { Counter, Gauge, type Registry } from 'prom-client';

/** Metrics of the agent's part in the cluster. */
export type ClusterMetrics = {
  published(outcome: 'changed' | 'unchanged' | 'failed'): void;
  offers(count: number): void;
  objectFaults(kind: 'annotation' | 'object', count: number): void;
  apiSilence(silenceMs: number): void;
  missingRight(right: string, isMissing: boolean): void;
  serviceCidrsUnknown(isUnknown: boolean): void;
  registeredWaiting(count: number): void;
  registeredOverdue(count: number): void;
};

const MS_PER_S = 1000;

/** Adds the metrics of the agent's part in the cluster to a registry. */
export function createClusterMetrics(registry: Registry): ClusterMetrics {
  const registers = [registry];
  const publications = new Counter({
    name: 'tke_eni_publications_total',
    help: "Writes of the agent's part of the NodeENIConfig, by outcome.",
    labelNames: ['outcome'],
    registers,
  });
  const offers = new Gauge({
    name: 'tke_eni_offered_addresses',
    help: 'Addresses that are offered back and out of use.',
    registers,
  });
  const faults = new Gauge({
    name: 'tke_eni_object_faults',
    help: 'Fields of the NodeENIConfig that are not accepted, by kind: annotation, object.',
    labelNames: ['kind'],
    registers,
  });
  const rights = new Gauge({
    name: 'tke_eni_missing_right',
    help: 'Rights at the API server that turned out to be missing, 1 each; token: it was not accepted.',
    labelNames: ['right'],
    registers,
  });
  const silence = new Gauge({
    name: 'tke_eni_api_server_silence_seconds',
    help: 'Time since the last contact with the API server; infinite when there was none.',
    registers,
  });
  const serviceCidrsUnknown = new Gauge({
    name: 'tke_eni_service_cidrs_unknown',
    help: '1 when the node has exclusive ENIs and no range of Services is known: their Pods reach no Service.',
    registers,
  });
  const registeredWaiting = new Gauge({
    name: 'tke_eni_registered_addresses_waiting',
    help: 'Addresses without a Pod that wait until no load balancer has them as a target.',
    registers,
  });
  const registeredOverdue = new Counter({
    name: 'tke_eni_registered_addresses_overdue_total',
    help: 'Addresses that serve again although they are still published as targets of load balancers: --load-balancer-wait was over.',
    registers,
  });
  return {
    published: (outcome) => publications.inc({ outcome }),
    offers: (count) => offers.set(count),
    objectFaults: (kind, count) => faults.set({ kind }, count),
    missingRight: (right, isMissing) => (isMissing ? rights.set({ right }, 1) : rights.remove({ right })),
    serviceCidrsUnknown: (isUnknown) => serviceCidrsUnknown.set(isUnknown ? 1 : 0),
    registeredWaiting: (count) => registeredWaiting.set(count),
    registeredOverdue: (count) => registeredOverdue.inc(count),
    apiSilence: (silenceMs) => silence.set(silenceMs / MS_PER_S),
  };
}
