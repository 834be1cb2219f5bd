// libcurl, loaded when it is first used. It brings twenty libraries of others with it, which are most of what
// a program would load at its start, and most commands never need it. base/curl.cc defines those of its
// functions that we call; one that is not there yet does not link.
#pragma once

#include <curl/curl.h>
