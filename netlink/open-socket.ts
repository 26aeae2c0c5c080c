import { closeSync } from 'node:fs';
import { ioctl } from './libc.ts';
import { withNetns } from './netns.ts';
import {
  type NetlinkSocket,
  openNetlinkFd,
  probeCapabilities,
  readDatagram,
  type SocketOptions,
  writeDatagram,
  writeDatagramInBackground,
} from './socket.ts';

/** Gives a descriptor of the network namespace that a socket lives in. @see uapi/linux/sockios.h */
const SIOCGSKNS = 0x894c;

/**
 * Opens a request socket in the network namespace of now; it stays there for life, wherever the thread goes.
 * The owner must close it. @throws LibcError
 */
export function openSocket(options: SocketOptions): NetlinkSocket {
  const { fd, portid } = openNetlinkFd(options);
  let isOpen = true;
  return {
    portid,
    capabilities: probeCapabilities(fd),
    write: (bytes, length) => writeDatagram(fd, bytes, length),
    writeInBackground: (bytes) => writeDatagramInBackground(fd, bytes),
    read: (buffer) => readDatagram(fd, buffer),
    reopen() {
      const netns = { fd: ioctl(fd, SIOCGSKNS) };
      try {
        return withNetns(netns, () => openSocket(options));
      } finally {
        closeSync(netns.fd);
      }
    },
    close() {
      if (isOpen) {
        isOpen = false;
        closeSync(fd);
      }
    },
  };
}
