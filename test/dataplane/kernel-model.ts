import { oddPort, portFields } from '../../dataplane/bridge-port.ts';
import { addressKey, filterKey, neighKey, routeKey, ruleKey } from '../../dataplane/desired.ts';
import { RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { ObservedHost, ObservedLink, ObservedRule } from '../../dataplane/observed.ts';
import type { Operation } from '../../dataplane/operation.ts';
import { sysctlName } from '../../sysctl/sysctl-key.ts';

const OURS = { protocol: RTPROT_TKE_ENI, shown: 'ours' };

/**
 * What a kernel does with one operation, as a pure step; it refuses what a kernel refuses.
 * `texts` maps the commands of a load to the table text that they leave.
 */
export function applyToModel(
  kernel: ObservedHost,
  operation: Operation,
  textOf: (commands: string) => string,
): ObservedHost {
  switch (operation.kind) {
    case 'set-sysctl':
      return { ...kernel, sysctls: new Map(kernel.sysctls).set(sysctlName(operation.key), operation.value) };
    case 'set-link': {
      const { up, mtu, group, mac, arp, master, promisc, ifalias } = operation.change;
      const change = {
        ...(up !== undefined && { isUp: up }),
        ...(mtu && { mtu }),
        ...(group !== undefined && { group }),
        ...(mac !== undefined && { mac }),
        ...(arp !== undefined && { isNoArp: !arp }),
        // A new port has the flags of one.
        ...(master !== undefined && { master, oddPort: { hairpin: false } }),
        ...(promisc !== undefined && { isPromisc: promisc }),
        ...(ifalias !== undefined && { ifalias }),
      };
      expect(
        kernel.links.some((link) => link.ifindex === operation.ifindex),
        'ENODEV',
        operation,
      );
      return {
        ...kernel,
        links: kernel.links.map((link) =>
          link.ifindex === operation.ifindex ? withoutEmpty({ ...link, ...change }) : link,
        ),
      };
    }
    case 'make-bridge': {
      const { ifindex, ifname, mac = '02:00:00:00:00:fe' } = operation.bridge;
      expect(!kernel.links.some((link) => link.ifindex === ifindex || link.ifname === ifname), 'EEXIST', operation);
      const made = { ifindex, ifname, kind: 'bridge', isUp: false, mtu: 1500, group: 0, mac };
      return { ...kernel, links: [...kernel.links, made] };
    }
    case 'delete-bridge': {
      const { ifindex, ifname } = operation.bridge;
      return {
        ...kernel,
        links: kernel.links
          .filter((link) => link.ifindex !== ifindex)
          .map((link) => (link.master === ifindex ? withoutEmpty({ ...link, master: 0 }) : link)),
        addresses: kernel.addresses.filter((address) => address.ifindex !== ifindex),
        sysctls: new Map([...kernel.sysctls].filter(([name]) => !name.includes(`.${ifname}.`))),
      };
    }
    case 'set-port': {
      const { ifindex, change } = operation;
      // Not a port: the kernel ignores it.
      const isPort = kernel.links.some((link) => link.ifindex === ifindex && (link.master ?? 0) !== 0);
      expect(isPort, 'EINVAL', operation);
      const changed = (link: ObservedLink): ObservedLink => {
        const all = { ...link.oddPort, ...change };
        return { ...link, oddPort: oddPort(portFields(all)) };
      };
      const links = kernel.links.map((link) => (link.ifindex === ifindex ? changed(link) : link));
      return { ...kernel, links };
    }
    case 'add-address':
      if (operation.before !== undefined)
        return {
          ...kernel,
          addresses: [...without(kernel.addresses, addressKey, operation.before), operation.address],
        };
      expect(
        !kernel.addresses.some((found) => addressKey(found) === addressKey(operation.address)),
        'EEXIST',
        operation,
      );
      return { ...kernel, addresses: [...kernel.addresses, operation.address] };
    case 'delete-address':
      return { ...kernel, addresses: without(kernel.addresses, addressKey, operation.address) };
    case 'replace-route':
      return {
        ...kernel,
        routes: [...without(kernel.routes, routeKey, operation.route), { ...operation.route, ...OURS }],
      };
    case 'delete-route':
      expect(
        kernel.routes.some((found) => routeKey(found) === routeKey(operation.route)),
        'ESRCH',
        operation,
      );
      return { ...kernel, routes: without(kernel.routes, routeKey, operation.route) };
    case 'add-rule':
      // A rule with a selector that ours never have is another rule. @see net/core/fib_rules.c rule_exists
      expect(!kernel.rules.some((found) => ruleKey(found) === ruleKey(operation.rule)), 'EEXIST', operation);
      return { ...kernel, rules: [...kernel.rules, { ...operation.rule, ...OURS }] };
    case 'delete-rule': {
      // The request has our protocol, and the kernel deletes only a rule that has it too.
      const isMeant = (rule: ObservedRule) =>
        rule.protocol === OURS.protocol && ruleKey(rule) === ruleKey(operation.rule);
      expect(kernel.rules.some(isMeant), 'ENOENT', operation);
      return { ...kernel, rules: kernel.rules.filter((rule) => !isMeant(rule)) };
    }
    case 'replace-neigh':
      return { ...kernel, neighs: [...without(kernel.neighs, neighKey, operation.neigh), operation.neigh] };
    case 'delete-neigh':
      return { ...kernel, neighs: without(kernel.neighs, neighKey, operation.neigh) };
    case 'attach-filter': {
      const { ours = [], foreign = [] } = kernel.filters ?? {};
      const made = { ...operation.filter, isCurrent: true };
      return { ...kernel, filters: { ours: [...without(ours, filterKey, made), made], foreign } };
    }
    case 'detach-filter': {
      const { ours = [], foreign = [] } = kernel.filters ?? {};
      return { ...kernel, filters: { ours: without(ours, filterKey, operation.filter), foreign } };
    }
    case 'load-nft':
      return { ...kernel, nft: { ...kernel.nft, text: textOf(operation.commands), restore: operation.commands } };
    case 'replace-flowtable': {
      const devices = [...operation.commands.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
      const flowtable = { isCurrent: true, devices, restore: operation.commands };
      return { ...kernel, nft: { ...kernel.nft, flowtable } };
    }
    case 'delete-flowtable': {
      const { flowtable: _gone, ...nft } = kernel.nft;
      return { ...kernel, nft };
    }
    case 'add-flow-devices':
    case 'delete-flow-devices': {
      const { flowtable } = kernel.nft;
      if (flowtable === undefined) throw new Error(`ENOENT: ${operation.kind}`);
      const others = flowtable.devices.filter((device) => !operation.devices.includes(device));
      const devices = operation.kind === 'add-flow-devices' ? [...others, ...operation.devices] : others;
      return { ...kernel, nft: { ...kernel.nft, flowtable: { ...flowtable, devices } } };
    }
  }
}

/** A link in no bridge is reported without that. */
function withoutEmpty(link: ObservedLink): ObservedLink {
  const { ifalias, ...unnamed } = link;
  const { master, oddPort: _ofAPort, ...free } = unnamed;
  const rest = master === 0 ? free : unnamed;
  return ifalias === undefined || ifalias === '' ? rest : { ...rest, ifalias };
}

function without<K, T extends K>(items: readonly T[], keyOf: (item: K) => string, gone: K): readonly T[] {
  return items.filter((item) => keyOf(item) !== keyOf(gone));
}

function expect(condition: boolean, errno: string, operation: Operation): void {
  if (!condition) throw new Error(`${errno}: ${JSON.stringify(operation)}`);
}
