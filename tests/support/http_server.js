// An HTTP server for tests of the client, with paths that behave and paths that do not.
//
// usage: node http_server.js PROTOCOL [KEY CERT CA]     PROTOCOL: h2 (and HTTP/1.1), https1, http1
//
// Prints "port N" once it listens.
'use strict';
const fs = require('fs');
const http = require('http');
const http2 = require('http2');
const https = require('https');
const zlib = require('zlib');

const [protocol, key, cert, ca] = process.argv.slice(2);
const stats = {
  requests: 0,
  connections: 0,
  seen: {},
  flooded: 0,
  http1: 0
};
const watchers = [];    // answers that stay open
const gatherings = {};  // answers that wait for each other
const held = [];        // answers that nobody gives

function read(request, then) {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => then(Buffer.concat(pieces)));
}

function answer(response, code, body, headers = {}) {
  response.writeHead(code, {'content-type': 'application/json', ...headers});
  response.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

// As much as the other side takes, counted.
function flood(response) {
  const line = 'x'.repeat(65535) + '\n';
  const more = () => {
    while (!response.destroyed && response.write(line)) stats.flooded += line.length;
  };
  response.on('drain', () => {
    stats.flooded += line.length;
    more();
  });
  more();
}

function destroy(request) {
  (request.stream && request.stream.session ? request.stream.session : request.socket).destroy();
}

const paths = {
  '/echo': (request, response, url, body) => answer(response, request.method === 'POST' ? 201 : 200, {
    protocol: request.httpVersion, method: request.method, target: request.url,
    authority: request.headers[':authority'] || request.headers.host,
    authorization: request.headers.authorization || '', accept: request.headers.accept,
    contentType: request.headers['content-type'] || '', as: request.headers['impersonate-user'] || '',
    body: body.toString(), subject: ((request.socket.getPeerCertificate || (() => ({}))).call(request.socket).subject || {}).CN || '',
  }),
  '/stats': (request, response) => answer(response, 200, stats),
  '/together': (request, response, url) => {
    const n = Number(url.searchParams.get('n'));
    const waiting = gatherings[n] = gatherings[n] || [];
    waiting.push(response);
    if (waiting.length < n) return;
    for (const one of gatherings[n]) answer(one, 200, {together: n});
    delete gatherings[n];
  },
  '/hang': (request, response) => held.push(response),
  '/drop': (request) => destroy(request),
  '/drop-first': (request, response) => {
    if (stats.seen['/drop-first'] === 1) return destroy(request);
    answer(response, 200, {});
  },
  '/half': (request, response) => {
    response.writeHead(200, {'content-type': 'application/json', 'content-length': '1000'});
    response.write('{');
    setImmediate(() => destroy(request));
  },
  '/token': (request, response, url) => {
    const good = request.headers.authorization === `Bearer ${url.searchParams.get('good')}`;
    if (!good) return answer(response, 401, {kind: 'Status', code: 401, reason: 'Unauthorized', message: 'Unauthorized'});
    if (url.searchParams.has('watch')) {
      response.writeHead(200);
      return response.end('open\n');
    }
    answer(response, 200, {});
  },
  '/text': (request, response) => answer(response, 500, 'it is broken\n', {'content-type': 'text/plain'}),
  '/redirect': (request, response, url) => answer(response, 302, '', {location: url.searchParams.get('to')}),
  '/retry': (request, response) => answer(response, 429, {}, {'retry-after': '7'}),
  '/large': (request, response, url) => {
    const body = Buffer.from('z'.repeat(Number(url.searchParams.get('bytes'))));
    const packed = (request.headers['accept-encoding'] || '').includes('gzip');
    answer(response, 200, packed ? zlib.gzipSync(body) : body, packed ? {'content-encoding': 'gzip', 'x-packed': '1'} : {});
  },
  '/watch': (request, response) => {
    response.writeHead(200, {'content-type': 'application/json'});
    if (response.flushHeaders) response.flushHeaders();
    watchers.push({request, response});
    response.on('close', () => { stats.closed = (stats.closed || 0) + 1; });
  },
  '/push': (request, response, url, body) => {
    for (const one of watchers) one.response.write(body);
    answer(response, 200, {});
  },
  '/end': (request, response) => {
    for (const one of watchers.splice(0)) one.response.end();
    answer(response, 200, {});
  },
  '/cut': (request, response) => {
    for (const one of watchers.splice(0)) destroy(one.request);
    answer(response, 200, {});
  },
  '/flood': (request, response) => {
    response.writeHead(200);
    flood(response);
  },
};

function handle(request, response) {
  const url = new URL(request.url, 'http://x');
  stats.requests++;
  stats.seen[url.pathname] = (stats.seen[url.pathname] || 0) + 1;
  if (request.httpVersion === '1.1') stats.http1++;
  const path = paths[url.pathname] ||
      ((q, r) => answer(r, 404, '404 page not found\n', {'content-type': 'text/plain'}));
  read(request, (body) => path(request, response, url, body));
}

const tls = key && {
  key: fs.readFileSync(key),
  cert: fs.readFileSync(cert),
  ca: fs.readFileSync(ca),
  requestCert: true,
  rejectUnauthorized: false,
};
let server;
if (protocol === 'h2') server = http2.createSecureServer({...tls, allowHTTP1: true}, handle);
if (protocol === 'https1') server = https.createServer(tls, handle);
if (protocol === 'http1') server = http.createServer(handle);
server.on(protocol === 'http1' ? 'connection' : 'secureConnection', () => stats.connections++);
server.on('sessionError', () => {});
server.listen(0, '127.0.0.1', 1024, () => console.log('port ' + server.address().port));
process.on('uncaughtException', (error) => console.error(error));
