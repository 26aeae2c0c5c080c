import { renderOperation } from '../../dataplane/operation.ts';
import type { Change } from './change.ts';

/** Renders the line that does the same by hand, on the host: `ip …`, `sysctl …`, `nft …`, `nsenter … ip …`. */
export function renderChange(change: Change): string {
  switch (change.kind) {
    case 'host':
      return renderOperation(change.operation);
    case 'pod':
      return `nsenter --net=${change.netns} -- ${renderOperation(change.operation)}`;
    case 'set-veth-mac':
      return `ip link set dev ${change.ifname} address ${change.mac}`;
    case 'delete-veth':
      return `ip link del dev ${change.ifname}`;
  }
}
