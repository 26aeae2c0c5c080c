import { renderConflist } from '../../../agent/install/conflist.ts';

/** Returns the network configuration that the agent installs: alone, and with what may be chained behind it. */
export function recordConflists(): object {
  const alone = { socket: '/run/tke-eni/agent.sock', mtu: 0, portMapping: false, bandwidth: false, chainedPlugins: [] };
  const versions = { cniVersion: '1.0.0', cniVersions: ['0.3.1', '1.0.0'] };
  return {
    alone: JSON.parse(renderConflist(alone, versions)),
    fastPath: JSON.parse(renderConflist({ ...alone, bandwidth: true, fastPath: 'auto' }, versions)),
    chained: JSON.parse(renderConflist({ ...alone, mtu: 1450, portMapping: true, bandwidth: true }, versions)),
  };
}
