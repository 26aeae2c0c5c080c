import type { NetnsView } from '../../../support/netns.ts';
import type { ProxyTable } from '../../api/model/clb/proxy-table.ts';
import { PASSED_MARK } from '../../security-groups.ts';
import type { HealthFound } from '../health-checks.ts';
import { ProxyNamespace } from './proxy-namespace.ts';

/** Each has a process. */
const MOST_PROXIES = 100;
const MOST_LISTENERS = 50;

/** Who may come to a proxy, and whether groups of targets are asked about what comes from it. What was admitted goes on. */
const RULESET = `
table ip proxies {
  set passing { type ifname
  }
  map ports { type ifname : verdict
  }
  chain proxied { type filter hook prerouting priority mangle; policy accept;
    iifname @passing ct state new ct mark set ${PASSED_MARK}
  }
  chain forward { type filter hook forward priority 5; policy accept;
    ct state established,related accept
    oifname vmap @ports
  }
}
`;

/** The namespaces of load balancers of layer 7, one each; at most 100. The caller makes changes one after the other. */
export class Proxies {
  readonly #router: NetnsView;
  readonly #prefix: string;
  readonly #onFound: (found: HealthFound) => void;
  /** By load balancer. */
  readonly #all = new Map<string, ProxyNamespace>();
  #serial = 0;
  #hasTable = false;

  constructor(router: NetnsView, prefix: string, onFound: (found: HealthFound) => void) {
    this.#router = router;
    this.#prefix = prefix;
    this.#onFound = onFound;
  }

  /** The router's port to the proxy of a VIP; undefined when it has none. */
  portOf(vip: string): string | undefined {
    return [...this.#all.values()].find((one) => one.vip === vip)?.port;
  }

  /** Has a load balancer serve a table; one without listeners ends its proxy. Idempotent. @throws Error when it is refused */
  async set(table: ProxyTable): Promise<void> {
    const { loadBalancerId, listeners } = table;
    if (listeners.length > MOST_LISTENERS) throw new Error(`${loadBalancerId}: more than ${MOST_LISTENERS} listeners`);
    if (listeners.length === 0) return this.#remove(loadBalancerId);
    const ports = new Set(listeners.map(({ port }) => port));
    if (ports.size < listeners.length) throw new Error(`${loadBalancerId}: two listeners have the same port`);
    const before = this.#all.get(loadBalancerId);
    if (before !== undefined) {
      await before.apply(table);
      return this.#admit(before.port, table);
    }
    const proxy = await this.#start(table);
    try {
      await this.#admit(proxy.port, table);
      await proxy.apply(table);
    } catch (error) {
      await this.#remove(loadBalancerId);
      throw error;
    }
  }

  /** Waits until requests follow what the checks have found so far. */
  async settled(): Promise<void> {
    await Promise.all([...this.#all.values()].map((one) => one.settled()));
  }

  /** Ends all of them. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#all.values()].map((one) => one.close()));
    this.#all.clear();
  }

  async #start(table: ProxyTable): Promise<ProxyNamespace> {
    if (this.#all.size >= MOST_PROXIES) throw new Error(`${table.loadBalancerId}: more than ${MOST_PROXIES} proxies`);
    if (!this.#hasTable) await this.#router.nft(RULESET);
    this.#hasTable = true;
    this.#serial += 1;
    const place = { router: this.#router, prefix: this.#prefix, serial: this.#serial };
    const proxy = new ProxyNamespace(place, table, this.#onFound);
    // It is entered first: what has started in part is ended by `close` too.
    this.#all.set(table.loadBalancerId, proxy);
    try {
      await proxy.start();
    } catch (error) {
      await this.#remove(table.loadBalancerId);
      throw error;
    }
    return proxy;
  }

  async #remove(loadBalancerId: string): Promise<void> {
    const proxy = this.#all.get(loadBalancerId);
    if (proxy === undefined) return;
    this.#all.delete(loadBalancerId);
    await this.#router.nft(
      [
        // What is to be deleted is added first: it may be missing.
        ...['add', 'flush'].map((verb) => `${verb} chain ip proxies ${proxy.port}`),
        ...['add', 'delete'].map((verb) => `${verb} element ip proxies ports { "${proxy.port}" : goto ${proxy.port} }`),
        ...['add', 'delete'].map((verb) => `${verb} element ip proxies passing { "${proxy.port}" }`),
        `delete chain ip proxies ${proxy.port}`,
      ].join('\n'),
    );
    await proxy.close();
  }

  /** Rules by which the security groups of a load balancer decide who comes in: the first that fits, else nobody. */
  async #admit(port: string, { listeners, passes }: ProxyTable): Promise<void> {
    const rules = listeners.flatMap(({ port: own, admission = [{ cidr: '0.0.0.0/0', isAccepted: true }] }) =>
      admission.map(({ cidr, isAccepted }) => `ip saddr ${cidr} tcp dport ${own} ${isAccepted ? 'accept' : 'drop'}`),
    );
    const ports = listeners.filter(({ admission }) => admission !== undefined).map((listener) => listener.port);
    await this.#router.nft(
      [
        ...['add', 'flush'].map((verb) => `${verb} chain ip proxies ${port}`),
        ...rules.map((rule) => `add rule ip proxies ${port} ${rule}`),
        ...ports.map((own) => `add rule ip proxies ${port} tcp dport ${own} drop`),
        `add element ip proxies ports { "${port}" : goto ${port} }`,
        `add element ip proxies passing { "${port}" }`,
        ...(passes === true ? [] : [`delete element ip proxies passing { "${port}" }`]),
      ].join('\n'),
    );
  }
}
