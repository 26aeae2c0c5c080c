import { NftError } from '../../dataplane/nft-error.ts';
import { ModelMachine } from '../../sim/kernel/machine.ts';
import { VirtualClock } from '../support/virtual-clock.ts';
import type { ContractMachine, ContractNetns } from './machine.ts';

/** Runs work on a machine of the model, whose clock goes on by itself. */
export async function withModelMachine(work: (machine: ContractMachine) => Promise<void> | void): Promise<void> {
  const clock = new VirtualClock();
  const machine = new ModelMachine({
    clock,
    nftRefused: (stderr) => new NftError('NFT_REFUSED', 'load nftables', stderr),
  });
  let count = 0;
  const createNetns = (): ContractNetns => {
    const name = `netns-${++count}`;
    const netns = machine.createNetns(name);
    const openRtnetlink = () => machine.openRtnetlink(netns);
    return {
      ...{ fd: netns.fd, path: netns.path, rtnetlink: openRtnetlink(), sysctl: machine.openSysctl(netns) },
      ...{ nft: machine.openNft(netns), monitor: (options) => machine.openMonitor(netns, options), openRtnetlink },
      end: () => {
        netns.close();
        machine.deleteNetns(name);
      },
    };
  };
  await work({
    host: createNetns(),
    createNetns,
    enter: (netns) => machine.enter(netns),
    until: (holds) => clock.until(holds, 10_000, () => clock.advance(10)),
    finish: (promise) => clock.run(promise),
  });
}
